/* A debugger's look at the floating-point registers of its child, and its change of one. Says what
 * it saw, and ends as the child does: 0 if that has what was put in. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static int child(void) {
    unsigned long mine = 0x1234567890ABCDEF;
    unsigned long now;
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    __asm__ volatile("movq %1, %%xmm9\n\t"
                     "syscall\n\t" /* kill(getpid(), SIGSTOP) */
                     "movq %%xmm9, %0"
                     : "=r"(now)
                     : "r"(mine), "a"(62L), "D"((long)getpid()), "S"((long)SIGSTOP)
                     : "rcx", "r11", "memory", "xmm9");
    return now != 42;
}

int main(void) {
    struct user_fpregs_struct registers;
    unsigned long low;
    int status;
    double own = 3;
    pid_t pid = fork();
    if (pid == 0) {
        _exit(child());
    }
    waitpid(pid, &status, 0);
    if (ptrace(PTRACE_GETFPREGS, pid, NULL, &registers) < 0) {
        perror("PTRACE_GETFPREGS");
    }
    memcpy(&low, &registers.xmm_space[9 * 4], sizeof low);
    printf("saw %lx\n", low);
    low = 42;
    memcpy(&registers.xmm_space[9 * 4], &low, sizeof low);
    registers.mxcsr ^= 0x6000; /* another rounding, which must not become ours */
    if (ptrace(PTRACE_SETFPREGS, pid, NULL, &registers) < 0) {
        perror("PTRACE_SETFPREGS");
    }
    volatile double third = 1 / own;
    printf("a third is %a\n", third);
    ptrace(PTRACE_CONT, pid, NULL, NULL);
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}
