/* Plays games to record the profile with which libmgba is optimised. Usage: `train FILE...`. A file is a GBA ROM, a
 * Game Boy ROM, or a .hex file of this folder. Each game runs with and without pictures, with keys, savestates and
 * sound. */
#include <mgba/flags.h>

#include <mgba-util/vfs.h>
#include <mgba/core/blip_buf.h>
#include <mgba/core/config.h>
#include <mgba/core/core.h>
#include <mgba/core/log.h>
#include <mgba/internal/gb/gb.h>
#include <mgba/internal/gba/gba.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROM_SIZE = 0x8000, FRAMES = 240, STRIDE = 256, ROWS = 224, COLOR = 0x143 };

static void no_log(struct mLogger* logger, int category, enum mLogLevel level, const char* format, va_list args) {
	(void) logger;
	(void) category;
	(void) level;
	(void) format;
	(void) args;
}

/* Reads a ROM, or builds one from a .hex file. This is not Intel HEX: its lines are `ADDRESS: BYTES ; comment`, in hex,
 * and lines that begin with # are comments. */
static struct VFile* read_rom(const char* path) {
	const char* ending = strrchr(path, '.');
	if (!ending || strcmp(ending, ".hex")) {
		return VFileOpen(path, O_RDONLY);
	}
	FILE* file = fopen(path, "r");
	if (!file) {
		return NULL;
	}
	static uint8_t rom[ROM_SIZE];
	memset(rom, 0, sizeof(rom));
	char line[256];
	while (fgets(line, sizeof(line), file)) {
		char* rest = line;
		unsigned long address = strtoul(line, &rest, 16);
		line[strcspn(line, ";")] = '\0';
		if (*line == '#' || *rest != ':') {
			continue;
		}
		++rest;
		for (char* end; address < ROM_SIZE; rest = end) {
			unsigned long byte = strtoul(rest, &end, 16);
			if (end == rest) {
				break;
			}
			rom[address++] = byte;
		}
	}
	fclose(file);
	return VFileMemChunk(rom, sizeof(rom));
}

static void skip_picture(struct mCore* core) {
	if (core->platform(core) == mPLATFORM_GB) {
		((struct GB*) core->board)->video.frameskipCounter = 1;
	} else {
		((struct GBA*) core->board)->video.frameskipCounter = 1;
	}
}

static void play(struct mCore* core) {
	static int16_t sound[4096];
	void* state = malloc(core->stateSize(core));
	for (unsigned frame = 0; frame < FRAMES; ++frame) {
		core->setKeys(core, frame * 2654435761u >> 22);
		if (frame & 1) {
			skip_picture(core);
		}
		core->runFrame(core);
		for (int channel = 0; channel < 2; ++channel) {
			blip_read_samples(core->getAudioChannel(core, channel), sound + channel, 2048, 1);
		}
		if (frame % 60 == 0) {
			core->saveState(core, state);
			core->loadState(core, state);
		}
	}
	free(state);
}

static int train(const char* path, bool color) {
	struct VFile* rom = read_rom(path);
	if (rom && color) {
		uint8_t mark = 0x80;
		rom->seek(rom, COLOR, SEEK_SET);
		rom->write(rom, &mark, 1);
		rom->seek(rom, 0, SEEK_SET);
	}
	struct mCore* core = rom ? mCoreFindVF(rom) : NULL;
	if (!core || !core->init(core)) {
		fprintf(stderr, "%s is not a ROM\n", path);
		return 1;
	}
	static uint32_t pixels[STRIDE * ROWS];
	struct mCoreOptions options = { .skipBios = true, .volume = 0x100, .fpsTarget = 60.f };
	mCoreInitConfig(core, NULL);
	mCoreConfigLoadDefaults(&core->config, &options);
	mCoreConfigSetDefaultValue(&core->config, "idleOptimization", "ignore");
	mCoreLoadForeignConfig(core, &core->config);
	core->setVideoBuffer(core, (void*) pixels, STRIDE);
	core->setAudioBufferSize(core, 0x2000);
	core->loadROM(core, rom);
	core->reset(core);
	play(core);
	bool again = !color && core->platform(core) == mPLATFORM_GB;
	mCoreConfigDeinit(&core->config);
	core->deinit(core);
	/* Play a Game Boy game a second time, as a Game Boy Color game. */
	return again ? train(path, true) : 0;
}

int main(int argc, char** argv) {
	static struct mLogger logger = { .log = no_log };
	mLogSetDefaultLogger(&logger);
	for (int i = 1; i < argc; ++i) {
		if (train(argv[i], false)) {
			return 1;
		}
	}
	return 0;
}
