/* The functions of tombstone.h, for x86-64 (System V ABI): with all registers and the stack as the caller left them, a
 * call goes on to the other definition, whatever its arguments are. */
#include "compat_tombstones.h"

#ifdef __x86_64__

	.hidden tombstone_targets, tombstone_find, tombstone_throw
	.text

/* The known definition, else tombstone_enter with the number in r11, the register that calls may change. */
#define DEFINE(number, name) \
	.globl name; .type name, @function; .p2align 4; name: .cfi_startproc; endbr64; \
	movq tombstone_targets + 8 * number(%rip), %r11; testq %r11, %r11; jz 1f; jmp *%r11; \
1:	movl $number, %r11d; jmp tombstone_enter; .cfi_endproc; .size name, . - name;

	.type tombstone_enter, @function
	.p2align 4
tombstone_enter:
	.cfi_startproc
	pushq %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq %rsp, %rbp
	.cfi_def_cfa_register %rbp
	subq $208, %rsp /* all that may hold arguments, and the number; a multiple of 16 */
	movq %rdi, (%rsp)
	movq %rsi, 8(%rsp)
	movq %rdx, 16(%rsp)
	movq %rcx, 24(%rsp)
	movq %r8, 32(%rsp)
	movq %r9, 40(%rsp)
	movq %rax, 48(%rsp)
	movq %r10, 56(%rsp)
	movups %xmm0, 64(%rsp)
	movups %xmm1, 80(%rsp)
	movups %xmm2, 96(%rsp)
	movups %xmm3, 112(%rsp)
	movups %xmm4, 128(%rsp)
	movups %xmm5, 144(%rsp)
	movups %xmm6, 160(%rsp)
	movups %xmm7, 176(%rsp)
	movq %r11, 192(%rsp)
	movl %r11d, %edi
	movq 8(%rbp), %rsi /* the caller */
	call tombstone_find
	movq %rax, %r11
	testq %r11, %r11
	jz 1f
	movq (%rsp), %rdi
	movq 8(%rsp), %rsi
	movq 16(%rsp), %rdx
	movq 24(%rsp), %rcx
	movq 32(%rsp), %r8
	movq 40(%rsp), %r9
	movq 48(%rsp), %rax
	movq 56(%rsp), %r10
	movups 64(%rsp), %xmm0
	movups 80(%rsp), %xmm1
	movups 96(%rsp), %xmm2
	movups 112(%rsp), %xmm3
	movups 128(%rsp), %xmm4
	movups 144(%rsp), %xmm5
	movups 160(%rsp), %xmm6
	movups 176(%rsp), %xmm7
	.cfi_remember_state
	leave
	.cfi_def_cfa %rsp, 8
	jmp *%r11
	.cfi_restore_state
1:	movl 192(%rsp), %edi
	movq 8(%rbp), %rsi
	call tombstone_throw
	leave
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_endproc
	.size tombstone_enter, . - tombstone_enter

COMPAT_TOMBSTONES(DEFINE)

#endif

	.section .note.GNU-stack, "", @progbits
