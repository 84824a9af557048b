/* Lua: one script context for each core with scripts. */
#include "internal.h"

#ifdef ENABLE_SCRIPTING
#include <mgba/core/log.h>
#include <mgba/core/scripting.h>
#include <mgba/script/context.h>

/* mGBA 0.11 moved these declarations to headers of their own. */
#if __has_include(<mgba/script/base.h>)
#include <mgba/script/base.h>
#endif
#if __has_include(<mgba/script/console.h>)
#include <mgba/script/console.h>
#endif

#ifndef _WIN32
#include <signal.h>
#endif

#include "text_buffer.h"

#ifdef FW_HAVE_CALLBACK_ARGUMENTS
#define TRIGGER(CONTEXT, NAME) mScriptContextTriggerCallback(CONTEXT, NAME, NULL)
#else
#define TRIGGER(CONTEXT, NAME) mScriptContextTriggerCallback(CONTEXT, NAME)
#endif

struct fw_scripts {
	struct mScriptContext context;
	struct mLogger logger; /* console_log gets only this, and computes the address of the struct from it */
	struct fw_text_buffers buffers;
	fw_console_fn console;
	void* user;
	struct fw_core* host;
	int running; /* the number of calls into Lua that have not returned */
	char* reported; /* the last error that was reported */
};

/* Runs before any script. It makes print write to the console, because the program uses stdout for its own output. And
 * it uses every class of libmgba's bindings once: all contexts share the tables of these classes, and libmgba fills
 * them at first use without a lock. The Rust side attaches one core at a time, so here that is safe. */
static const char PRELUDE[] =
	"print = function(...)\n"
	"  local t = table.pack(...)\n"
	"  for i = 1, t.n do t[i] = tostring(t[i]) end\n"
	"  console:log(table.concat(t, '\\t'))\n"
	"end\n"
	"local function touch(object, member) pcall(function() return object[member] end) end\n"
	"pcall(emu.platform, emu)\n"
	"for _, name in ipairs { 'cart0', 'wram' } do touch(emu.memory[name], 'size') end\n"
	"touch(console, 'log')\n"
	"touch(callbacks, 'add')\n"
	"pcall(function() local s = socket.tcp(); touch(s._s, 'error'); s._s:close() end)\n"
	"pcall(function() touch(console:createBuffer(''), 'print') end)\n";

static const char* engine_error(struct fw_scripts* scripts) {
	struct mScriptEngineContext* engine = HashTableLookup(&scripts->context.engines, "lua");
	return engine ? engine->getError(engine) : NULL;
}

/* Reports an error to the console, but only once if it repeats, for example in each frame. */
static void report(struct fw_scripts* scripts, const char* error) {
	if (scripts->reported && !strcmp(error, scripts->reported)) {
		return;
	}
	free(scripts->reported);
	scripts->reported = strdup(error);
	scripts->console(scripts->user, mLOG_ERROR, error);
}

static void console_log(struct mLogger* logger, int category, enum mLogLevel level, const char* format, va_list args) {
	UNUSED(category);
	struct fw_scripts* scripts = (struct fw_scripts*) ((char*) logger - offsetof(struct fw_scripts, logger));
	va_list again;
	va_copy(again, args);
	int len = vsnprintf(NULL, 0, format, again);
	va_end(again);
	char* message = len >= 0 ? malloc((size_t) len + 1) : NULL;
	if (message) {
		vsnprintf(message, (size_t) len + 1, format, args);
		/* From mGBA 0.10.2 on, the engine writes its errors to the console itself. */
		const char* error = level == mLOG_ERROR ? engine_error(scripts) : NULL;
		if (error && !strcmp(error, message)) {
			report(scripts, message);
		} else {
			scripts->console(scripts->user, level, message);
		}
		free(message);
	}
}

static void print_buffer(void* user, const char* text) {
	struct fw_scripts* scripts = user;
	scripts->console(scripts->user, mLOG_DEBUG, text);
}

static void trigger(struct fw_scripts* scripts, const char* callback) {
	/* If a script runs frames itself, it must not be called again inside that call:
	 * the engine stores only one "current" call and would lose it. */
	if (scripts->running) {
		return;
	}
	++scripts->running;
	struct fw_core* before = fw_saves_enter(scripts->host);
	TRIGGER(&scripts->context, callback);
	mScriptContextDrainPool(&scripts->context);
	fw_saves_enter(before);
	--scripts->running;
	fw_check_rom(scripts->host);
	/* Before mGBA 0.10.2, libmgba does not report the errors of callbacks. */
	const char* error = engine_error(scripts);
	if (error) {
		report(scripts, error);
	}
}

void fw_scripts_trigger(struct fw_core* self, const char* callback) {
	if (self->scripts) {
		trigger(self->scripts, callback);
	}
}

/* The events during emulation. In mGBA, the core's own thread passes them on to scripts. A core of this shim has no
 * such thread, so these functions do it. */
#define CORE_EVENT(NAME) \
	static void on_ ## NAME(void* scripts) { \
		trigger(scripts, #NAME); \
	}
CORE_EVENT(crashed)
CORE_EVENT(sleep)
CORE_EVENT(stop)
CORE_EVENT(keysRead)
CORE_EVENT(savedataUpdated)
CORE_EVENT(alarm)

static void attach_core(struct fw_scripts* scripts, struct fw_core* host) {
	struct mCoreCallbacks events = {
		.context = scripts,
		.coreCrashed = on_crashed,
		.sleep = on_sleep,
		.shutdown = on_stop,
		.keysRead = on_keysRead,
		.savedataUpdated = on_savedataUpdated,
		.alarm = on_alarm,
	};
	host->scripts = scripts;
	scripts->host = host;
	mScriptContextAttachCore(&scripts->context, host->core);
	host->core->addCoreCallbacks(host->core, &events);
}

static void detach_core(struct fw_scripts* scripts) {
	struct fw_core* host = scripts->host;
	host->core->clearCoreCallbacks(host->core);
	mScriptContextDetachCore(&scripts->context);
	host->scripts = NULL;
	scripts->host = NULL;
}

static int run(struct fw_scripts* scripts, const char* name, const void* source, size_t len, char** error) {
	struct mScriptEngineContext* engine = HashTableLookup(&scripts->context.engines, "lua");
	if (!engine) {
		return FW_NO_SCRIPTING;
	}
	struct VFile* vf = VFileFromConstMemory(source, len);
	if (!vf) {
		return FW_NO_MEMORY;
	}
	/* If the script is run again and fails again, the error is reported again. */
	free(scripts->reported);
	scripts->reported = NULL;
	++scripts->running;
	struct fw_core* before = fw_saves_enter(scripts->host);
	bool ok = engine->load(engine, name, vf) && engine->run(engine);
	mScriptContextDrainPool(&scripts->context);
	fw_saves_enter(before);
	--scripts->running;
	fw_check_rom(scripts->host);
	vf->close(vf);
	if (ok) {
		return FW_OK;
	}
	const char* message = engine->getError(engine);
	*error = strdup(message ? message : "the script failed without a message");
	report(scripts, *error ? *error : "out of memory");
	return FW_SCRIPT_FAILED;
}

int fw_scripts_attach(struct fw_core* self, fw_console_fn console, void* user) {
	fw_scripts_detach(self);
#ifndef _WIN32
	/* A script that writes to a closed socket must not end the process. */
	struct sigaction action;
	if (!sigaction(SIGPIPE, NULL, &action) && action.sa_handler == SIG_DFL) {
		signal(SIGPIPE, SIG_IGN);
	}
#endif
	struct fw_scripts* scripts = calloc(1, sizeof(*scripts));
	if (!scripts) {
		return FW_NO_MEMORY;
	}
	scripts->console = console;
	scripts->user = user;
	scripts->logger.log = console_log;
	struct mScriptContext* context = &scripts->context;
	mScriptContextInit(context);
	mScriptContextAttachStdlib(context);
	mScriptContextAttachSocket(context);
	mScriptContextRegisterEngines(context);
	mScriptContextAttachLogger(context, &scripts->logger);
	scripts->buffers.print = print_buffer;
	scripts->buffers.user = scripts;
	mScriptContextSetTextBufferFactory(context, fw_text_buffer_create, &scripts->buffers);
	attach_core(scripts, self);
	char* error = NULL;
	int status = run(scripts, "*framewire", PRELUDE, sizeof(PRELUDE) - 1, &error);
	free(error);
	if (status != FW_OK) {
		fw_scripts_detach(self);
		return FW_NO_SCRIPTING;
	}
	return FW_OK;
}

void fw_scripts_move(struct fw_core* to, struct fw_core* from) {
	fw_scripts_detach(to);
	struct fw_scripts* scripts = from->scripts;
	if (!scripts) {
		return;
	}
	detach_core(scripts);
	attach_core(scripts, to);
	trigger(scripts, "start");
}

void fw_scripts_detach(struct fw_core* self) {
	struct fw_scripts* scripts = self->scripts;
	if (!scripts) {
		return;
	}
	trigger(scripts, "shutdown");
	detach_core(scripts);
	mScriptContextDeinit(&scripts->context);
	fw_text_buffers_deinit(&scripts->buffers);
	free(scripts->reported);
	free(scripts);
}

int fw_script_run(struct fw_core* self, const char* name, const uint8_t* source, size_t len, char** error) {
	*error = NULL;
	if (!self->scripts) {
		return FW_NO_SCRIPTING;
	}
	return run(self->scripts, name, source, len, error);
}

#else /* libmgba was built without scripting */

void fw_scripts_trigger(struct fw_core* self, const char* callback) {
	UNUSED(self);
	UNUSED(callback);
}

int fw_scripts_attach(struct fw_core* self, fw_console_fn console, void* user) {
	UNUSED(self);
	UNUSED(console);
	UNUSED(user);
	return FW_NO_SCRIPTING;
}

void fw_scripts_move(struct fw_core* to, struct fw_core* from) {
	UNUSED(to);
	UNUSED(from);
}

void fw_scripts_detach(struct fw_core* self) {
	UNUSED(self);
}

int fw_script_run(struct fw_core* self, const char* name, const uint8_t* source, size_t len, char** error) {
	UNUSED(self);
	UNUSED(name);
	UNUSED(source);
	UNUSED(len);
	*error = NULL;
	return FW_NO_SCRIPTING;
}

#endif
