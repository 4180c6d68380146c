/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest that fits into a boot sector, for two things that two processors do at
 * the same time and that multi-threaded TCG once got wrong:
 *
 *   - one changes the map of the memory, while the other reads a device's registers;
 *   - one changes code, while the other executes it.
 *
 * It says "boot", after the first part "map <reads that gave something else>", and
 * after the second "code".  If the other processor goes on executing what the code
 * was before, the second part does not end.
 */
	.set	part, 0x7000		/* that the other processor is to do; 0: neither */
	.set	wrong, 0x7004
	.set	seen, 0x7008		/* what the code said last */
	.set	expected, 0x700c	/* in the device's register */
	.set	ap_page, 0x8000		/* where SIPI starts the other processor */
	.set	code, 0x9003		/* on a page of its own; its operand is aligned */
	.set	icr, 0xfee00300		/* interrupt command of the local APIC */
	.set	to_others, 0xc0000
	.set	hpet, 0xfed00000	/* its first register says what it can do */
	.set	pci_address, 0xcf8
	.set	pci_data, 0xcfc
	.set	num_maps, 10000
	.set	num_codes, 5000

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
	movw	$ap_start, %si
	movw	$ap_page, %di
	movw	$(ap_end - ap_start), %cx
	rep movsb
	movw	$part, %di
	movw	$16, %cx
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
	movl	hpet, %eax
	movl	%eax, expected
	movb	$0xb8, code		/* movl $0, %eax; ret */
	movl	$0, code + 1
	movb	$0xc3, code + 5
	movl	$(to_others | 0x4500), icr
	movl	$3000, %ecx
1:	outb	%al, $0x80
	loop	1b
	movl	$(to_others | 0x4600 | ap_page >> 12), icr
	movl	$boot, %esi
	call	say
	call	end_line

	/* The host bridge has memory or the bus at 0xc0000, which makes one region more or less. */
	movl	$1, part
	movw	$pci_address, %dx
	movl	$0x80000058, %eax
	outl	%eax, %dx
	movl	$num_maps, %ecx
	movw	$(pci_data + 2), %dx
	movb	$0x33, %al
1:	xorb	$0x33, %al
	outb	%al, %dx
	loop	1b
	movl	$map, %esi
	call	say
	movl	wrong, %eax
	call	put_hex
	call	end_line

	movl	$2, part
	movl	$1, %ebx
1:	movl	%ebx, code + 1
2:	pause
	cmpl	%ebx, seen
	jne	2b
	incl	%ebx
	cmpl	$num_codes, %ebx
	jbe	1b
	movl	$changed, %esi
	call	say
	call	end_line
1:	hlt
	jmp	1b

/* The text at %esi, up to a zero */
say:
	lodsb
	testb	%al, %al
	jz	1f
	call	put
	jmp	say
1:	ret

	.include "serial.inc"

	.code16
ap_start:
	cli
	xorw	%ax, %ax
	movw	%ax, %ds
	lgdtl	gdt_register
	movl	%cr0, %eax
	orb	$1, %al
	movl	%eax, %cr0
	ljmp	$8, $(ap_page + ap32 - ap_start)
	.code32
ap32:
	movw	$16, %ax
	movl	%eax, %ds
	movl	%eax, %ss
	movl	$0x6000, %esp
	movl	$code, %ebx
1:	cmpb	$1, part
	jb	1b
	ja	2f
	movl	hpet, %eax
	cmpl	expected, %eax
	je	1b
	incl	wrong
	jmp	1b
2:	call	*%ebx
	movl	%eax, seen
	jmp	2b
ap_end:

boot:
	.asciz	"boot"
map:
	.asciz	"map "
changed:
	.asciz	"code"
	.include "gdt.inc"

	.org	510
	.word	0xaa55
