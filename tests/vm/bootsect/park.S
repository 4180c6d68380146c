/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest that fits into a boot sector, for what a parked vCPU does with INIT,
 * SIPI and NMI.  The processor that boots does what it is told over the serial
 * port, one character at a time; the other counts until it is told to halt.
 *
 *   s  send INIT and SIPI: start the other processor
 *   i  send INIT only          p  send SIPI only
 *   n  send NMI                h  tell the other processor to halt
 *   c  answer "<counter> <starts> <wake-ups> <NMIs> <sent> <started> <lost>", hexadecimal;
 *      sent and started are times, in 2^20 cycles of the time stamp counter
 *   e  eject CPU 1
 *   x  have the other processor eject itself
 *   b  send very many interrupts to all others, which take none
 *
 * Each is answered with a line: what was asked for with c, the character else.
 * After each boot it says "boot" first.
 */
	.set	counter, 0x7000		/* grows while the other processor runs */
	.set	starts, 0x7004		/* times that it was started */
	.set	wakeups, 0x7008		/* times that it came out of HLT */
	.set	nmis, 0x700c		/* that it took */
	.set	sent_at, 0x7010		/* when s was done, by the clock of the one that boots */
	.set	started_at, 0x7014	/* when the other one was started, by its own clock */
	.set	lost, 0x7018		/* reads of pm1_control by it that gave 0 */
	.set	do_halt, 0x701c
	.set	do_eject, 0x7020
	.set	ap_page, 0x8000		/* where SIPI starts it */
	.set	icr, 0xfee00300		/* interrupt command of the local APIC */
	.set	to_others, 0xc0000
	.set	cpuhp, 0xaf00		/* CPU hotplug registers of the pc machine */
	.set	pm1_control, 0x604	/* of ACPI, where firmware puts it; nothing without firmware */

	.text
	.code16
	.globl	_start
_start:
	cli
	cld
	ljmp	$0, $1f
1:	xorw	%ax, %ax
	movw	%ax, %ds
	movw	%ax, %es
	movw	%ax, %ss
	movw	$0x7000, %sp
	movw	$ap_start, %si
	movw	$ap_page, %di
	movw	$(ap_end - ap_start), %cx
	rep movsb
	/* NMI comes to the other processor, in real mode. */
	movl	$(ap_page + ap_nmi - ap_start), 2 * 4
	movw	$counter, %di
	movw	$36, %cx
	rep stosb
	lgdt	gdt_register
	movl	%cr0, %eax
	orb	$1, %al
	movl	%eax, %cr0
	ljmp	$8, $boot32

	.code32
boot32:
	movw	$16, %ax
	movl	%eax, %ds
	movl	%eax, %es
	movl	%eax, %ss
	movl	$0x7000, %esp
	/* The firmware may leave the registers for hotplug in the old layout. */
	movw	$cpuhp, %dx
	xorl	%eax, %eax
	outb	%al, %dx
	/* What is written to the others is for CPU 1. */
	incl	%eax
	outl	%eax, %dx
	/* So that it never reads as 0. */
	movw	$pm1_control, %dx
	outw	%ax, %dx
	movl	$hello, %esi
1:	lodsb
	call	put
	cmpb	$'\n', %al
	jne	1b

command:
	movw	$com1 + 5, %dx
1:	inb	%dx, %al
	testb	$1, %al
	jz	1b
	movw	$com1, %dx
	inb	%dx, %al
	movb	%al, %bl

	cmpb	$'c', %bl
	je	tell
	cmpb	$'h', %bl
	jne	1f
	movb	$1, do_halt
1:	cmpb	$'n', %bl
	jne	1f
	movl	$(to_others | 0x4400), icr
1:	cmpb	$'b', %bl
	jne	1f
	movl	$0x20000, %ecx
2:	movl	$(to_others | 0x4041), icr
	movl	$30, %eax
3:	pause
	decl	%eax
	jnz	3b
	loop	2b
1:	cmpb	$'x', %bl
	jne	1f
	movb	$1, do_eject
1:	cmpb	$'e', %bl
	jne	1f
	movw	$cpuhp + 4, %dx
	movb	$8, %al
	outb	%al, %dx
1:	cmpb	$'i', %bl
	je	1f
	cmpb	$'s', %bl
	jne	2f
	movb	$0, do_halt
	movl	$0x10, %ecx
	rdmsr
	shrdl	$20, %edx, %eax
	movl	%eax, sent_at
1:	movl	$(to_others | 0x4500), icr
	call	settle
2:	cmpb	$'p', %bl
	je	1f
	cmpb	$'s', %bl
	jne	2f
1:	movl	$(to_others | 0x4600 | ap_page >> 12), icr
	call	settle
2:	movb	%bl, %al
	call	put
end_of_line:
	call	end_line
	jmp	command

tell:
	movl	$counter, %esi
1:	lodsl
	call	put_hex
	movb	$' ', %al
	call	put
	cmpl	$do_halt, %esi
	jne	1b
	jmp	end_of_line

/* Long enough for the other processor to act on an INIT */
settle:
	movl	$3000, %ecx
1:	outb	%al, $0x80
	loop	1b
	ret

	.include "serial.inc"

	.code16
ap_start:
	cli
	xorw	%ax, %ax
	movw	%ax, %ds
	movw	%ax, %ss
	movw	$0x6000, %sp
	movl	$0x10, %ecx
	rdmsr
	shrdl	$20, %edx, %eax
	movl	%eax, started_at
	incw	starts
1:	incl	counter
	movw	$pm1_control, %dx
	inw	%dx, %ax
	testw	%ax, %ax
	jnz	2f
	incl	lost
2:	cmpb	$0, do_eject
	je	2f
	movb	$0, do_eject
	movw	$cpuhp + 4, %dx
	movb	$8, %al
	outb	%al, %dx
2:	cmpb	$0, do_halt
	je	1b
2:	hlt
	incw	wakeups
	jmp	2b
ap_nmi:
	incw	nmis
	iret
ap_end:

hello:
	.ascii	"boot\n"
	.include "gdt.inc"

	.org	510
	.word	0xaa55
