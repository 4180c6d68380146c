/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * 64 KiB of firmware that do nothing but start the boot sector, for the KVM of
 * machines on which real firmware takes its time.  Assembled in the folder that
 * has the sector as "image".
 */
	.text
	.code16
	.globl	_start
_start:
	cli
	cld
	movw	%cs, %ax
	movw	%ax, %ds
	xorw	%ax, %ax
	movw	%ax, %es
	movw	$image, %si
	movw	$0x7c00, %di
	movw	$512, %cx
	rep movsb
	ljmp	$0, $0x7c00
image:
	.incbin	"image"

	/* Where the processor starts */
	.org	0xfff0
	ljmp	$0xf000, $_start
	.org	0x10000
