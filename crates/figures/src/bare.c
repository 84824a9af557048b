/* A bare loop over libmgba, as fast as it goes: what there is to be had on this machine.
 *
 * usage: bare ROM SECONDS    prints the frames that were run and the seconds they took */
#include <mgba/flags.h>

#include <mgba/core/core.h>
#include <mgba/core/log.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* libmgba would otherwise write a line for each call of the BIOS. */
static void say_nothing(struct mLogger* logger, int category, enum mLogLevel level, const char* format, va_list args) {
	(void) logger, (void) category, (void) level, (void) format, (void) args;
}

static double now(void) {
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec * 1e-9;
}

int main(int argc, char** argv) {
	if (argc != 3) {
		return 2;
	}
	struct mLogger logger = { .log = say_nothing };
	mLogSetDefaultLogger(&logger);
	struct mCore* core = mCoreFind(argv[1]);
	if (!core || !core->init(core)) {
		fprintf(stderr, "%s is no ROM\n", argv[1]);
		return 1;
	}
	mCoreInitConfig(core, NULL);
	color_t* pixels = calloc(256 * 224, sizeof(*pixels));
	core->setVideoBuffer(core, pixels, 256);
	if (!mCoreLoadFile(core, argv[1])) {
		fprintf(stderr, "%s cannot be loaded\n", argv[1]);
		return 1;
	}
	core->reset(core);
	double length = atof(argv[2]);
	double start = now();
	long frames = 0;
	while (now() - start < length) {
		core->runFrame(core);
		++frames;
	}
	printf("%ld %.6f\n", frames, now() - start);
	core->deinit(core);
	return 0;
}
