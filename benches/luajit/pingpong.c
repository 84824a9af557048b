/* Measures the limits of the machine, for comparison with pingpong.lua:
 *
 *   pingpong line CORE CORE COUNT   prints the ns for a round trip of one cache line between two cores
 *   pingpong copy CORE COUNT        prints the ns for a copy of 64 bytes into a ring of 512 KiB
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void pin(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    if (sched_setaffinity(0, sizeof set, &set))
        perror("sched_setaffinity"), exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static void await(_Atomic uint64_t *word, uint64_t value)
{
    while (atomic_load_explicit(word, memory_order_acquire) != value)
        ;
}

/* Returns the seconds for `count` round trips. Before these, it makes a tenth as many, which it does not measure. */
static double line(int here, int there, uint64_t count)
{
    _Atomic uint64_t *word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint64_t warm = count / 10;
    double start = 0;
    if (fork() == 0) {
        pin(there);
        for (uint64_t i = 1; i <= warm + count; i++) {
            await(word, 2 * i - 1);
            atomic_store_explicit(word, 2 * i, memory_order_release);
        }
        _exit(0);
    }
    pin(here);
    for (uint64_t i = 1; i <= warm + count; i++) {
        if (i == warm + 1)
            start = now();
        atomic_store_explicit(word, 2 * i - 1, memory_order_release);
        await(word, 2 * i);
    }
    double taken = now() - start;
    wait(NULL);
    return taken;
}

/* Returns the seconds for `count` copies. */
static double copy(int core, uint64_t count)
{
    enum { RING = 8192, SIZE = 64 };
    static char ring[RING][SIZE], message[SIZE];
    pin(core);
    memset(ring, 1, sizeof ring);
    double start = now();
    for (uint64_t i = 0; i < count; i++) {
        memcpy(message, &i, sizeof i);
        memcpy(ring[i % RING], message, SIZE);
        atomic_signal_fence(memory_order_seq_cst); /* otherwise the compiler could remove copies */
    }
    return now() - start;
}

int main(int argc, char **argv)
{
    if (argc == 5 && !strcmp(argv[1], "line")) {
        uint64_t count = strtoull(argv[4], NULL, 10);
        printf("%.3f\n", line(atoi(argv[2]), atoi(argv[3]), count) / count * 1e9);
    } else if (argc == 4 && !strcmp(argv[1], "copy")) {
        uint64_t count = strtoull(argv[3], NULL, 10);
        printf("%.3f\n", copy(atoi(argv[2]), count) / count * 1e9);
    } else {
        fputs("usage: pingpong line CORE CORE COUNT | pingpong copy CORE COUNT\n", stderr);
        return 2;
    }
}
