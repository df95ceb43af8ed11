// Reads where a run trains, and checks that it can.
#ifndef WARPSMITH_TRAINER_DEVICE_SECTION_H_
#define WARPSMITH_TRAINER_DEVICE_SECTION_H_

#include "core/config/config_section.h"
#include "trainer/configuration.h"

namespace warpsmith {

// Reads the keys of section "trainer" that concern a device: device, recomputation, deterministic.
void ReadTrainerDevice(ConfigSection& section, TrainerSection* trainer);

// Adds an error to `section` for each setting that the device of the whole configuration does not train with.
void CheckTrainerDevice(ConfigSection& section, const Configuration& configuration);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_DEVICE_SECTION_H_
