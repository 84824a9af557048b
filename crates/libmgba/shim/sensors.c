/* The tilt, rotation and light sensors of cartridges, whose values the Rust side sets; and rumble. */
#include "internal.h"

#include <stddef.h>

static struct fw_sensors* of_rotation(struct mRotationSource* source) {
	return (struct fw_sensors*) ((char*) source - offsetof(struct fw_sensors, rotation));
}

static int32_t tilt_x(struct mRotationSource* source) {
	return of_rotation(source)->values[FW_TILT_X];
}

static int32_t tilt_y(struct mRotationSource* source) {
	return of_rotation(source)->values[FW_TILT_Y];
}

static int32_t gyro(struct mRotationSource* source) {
	return of_rotation(source)->values[FW_GYRO];
}

static void sample_rotation(struct mRotationSource* source) {
	UNUSED(source);
}

static void sample_light(struct GBALuminanceSource* source) {
	UNUSED(source);
}

static uint8_t light(struct GBALuminanceSource* source) {
	const struct fw_sensors* self =
		(const struct fw_sensors*) ((char*) source - offsetof(struct fw_sensors, light));
	/* The cartridge counts up to this value. A lower value means brighter light. */
	return 0xFF - self->values[FW_LIGHT];
}

static void set_rumble(struct mRumble* rumble, bool on) {
	struct fw_sensors* self = (struct fw_sensors*) ((char*) rumble - offsetof(struct fw_sensors, rumble));
	self->rumbles = on;
	self->rumbled |= on;
}

#ifdef FW_HAVE_RUMBLE_TIME
static void rumble_since(struct mRumble* rumble, bool on, uint32_t cycles) {
	UNUSED(cycles);
	set_rumble(rumble, on);
}
#else
static void rumble_now(struct mRumble* rumble, int on) {
	set_rumble(rumble, on);
}
#endif

void fw_sensors_init(struct fw_core* self) {
	struct fw_sensors* sensors = &self->sensors;
	sensors->rotation = (struct mRotationSource) {
		.sample = sample_rotation,
		.readTiltX = tilt_x,
		.readTiltY = tilt_y,
		.readGyroZ = gyro,
	};
	sensors->light = (struct GBALuminanceSource) {
		.sample = sample_light,
		.readLuminance = light,
	};
#ifdef FW_HAVE_RUMBLE_TIME
	sensors->rumble.setRumble = rumble_since;
#else
	sensors->rumble.setRumble = rumble_now;
#endif
	struct mCore* core = self->core;
	core->setPeripheral(core, mPERIPH_ROTATION, &sensors->rotation);
	core->setPeripheral(core, mPERIPH_RUMBLE, &sensors->rumble);
	if (core->platform(core) == mPLATFORM_GBA) {
		core->setPeripheral(core, mPERIPH_GBA_LUMINANCE, &sensors->light);
	}
}

void fw_sensor_set(struct fw_core* self, unsigned sensor, int32_t value) {
	if (sensor < FW_SENSORS) {
		self->sensors.values[sensor] = value;
	}
}

bool fw_take_rumble(struct fw_core* self) {
	bool rumbled = self->sensors.rumbled;
	self->sensors.rumbled = self->sensors.rumbles;
	return rumbled;
}

void fw_sensors_reset(struct fw_core* self) {
	self->sensors.rumbles = false;
	self->sensors.rumbled = false;
}
