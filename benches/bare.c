/* Measures how many frames per second libmgba can run on this machine. It loads a ROM and calls only libmgba's runFrame
 * in a loop.
 *
 *   bare ROM SECONDS     prints frames per second
 *
 * cc -O2 -o bare bare.c -lmgba
 */
#include <mgba/flags.h>

#include <mgba/core/config.h>
#include <mgba/core/core.h>
#include <mgba/core/log.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void be_quiet(struct mLogger *logger, int category, enum mLogLevel level, const char *format, va_list args)
{
    (void)logger, (void)category, (void)level, (void)format, (void)args;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    static color_t pixels[256 * 224];
    static struct mLogger logger = { .log = be_quiet };
    if (argc != 3) {
        fputs("usage: bare ROM SECONDS\n", stderr);
        return 2;
    }
    mLogSetDefaultLogger(&logger);
    struct mCore *core = mCoreFind(argv[1]);
    if (!core || !core->init(core)) {
        fprintf(stderr, "bare: %s is not a ROM\n", argv[1]);
        return 1;
    }
    mCoreInitConfig(core, NULL);
    core->setVideoBuffer(core, pixels, 256);
    if (!mCoreLoadFile(core, argv[1])) {
        fprintf(stderr, "bare: cannot load %s\n", argv[1]);
        return 1;
    }
    struct mCoreOptions options = { .skipBios = true, .useBios = false, .volume = 0x100 };
    mCoreConfigLoadDefaults(&core->config, &options);
    /* As in Framewire's cores: idle loops of the game are run, not skipped. */
    mCoreConfigSetDefaultValue(&core->config, "idleOptimization", "ignore");
    mCoreLoadForeignConfig(core, &core->config);
    core->reset(core);
    double length = atof(argv[2]);
    /* The first frames, in which the game starts, are not measured. */
    for (long i = 0; i < 300; i++)
        core->runFrame(core);
    double start = now(), time = 0;
    long frames = 0;
    for (; time < length; time = now() - start, frames++)
        core->runFrame(core);
    printf("%.1f\n", frames / time);
    core->deinit(core);
}
