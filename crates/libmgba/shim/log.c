/* libmgba's own log. By default, libmgba prints it to stdout, which the program
 * uses for its own output. Here it goes to a function of the Rust side, or nowhere. */
#include "internal.h"

#include <mgba/core/log.h>

#include <stdatomic.h>

static fw_log_fn sink;
/* Bits of mLogLevel: only these levels are formatted and passed on. Games can log
 * thousands of lines a frame, so lines of other levels must cost only one load. */
static atomic_int levels;

static void on_log(struct mLogger* logger, int category, enum mLogLevel level, const char* format, va_list args) {
	UNUSED(logger);
	if (!(atomic_load_explicit(&levels, memory_order_relaxed) & (int) level)) {
		return;
	}
	char message[1024];
	vsnprintf(message, sizeof(message), format, args);
	const char* name = mLogCategoryName(category);
	sink(level, name ? name : "", message);
}

static struct mLogger logger = { .log = on_log };

void fw_log_install(fw_log_fn fn) {
	sink = fn;
	mLogSetDefaultLogger(&logger);
}

void fw_log_levels(int mask) {
	atomic_store_explicit(&levels, mask, memory_order_relaxed);
}
