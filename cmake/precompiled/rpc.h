// Headers behind every generated message. Not gRPC's: one source in twenty includes them, and reading them precompiled
// takes every source half a second.
#ifndef WARPSMITH_CMAKE_PRECOMPILED_RPC_H_
#define WARPSMITH_CMAKE_PRECOMPILED_RPC_H_

#include <google/protobuf/extension_set.h>
#include <google/protobuf/generated_message_util.h>
#include <google/protobuf/map.h>
#include <google/protobuf/map_entry.h>
#include <google/protobuf/map_field_inl.h>
#include <google/protobuf/message.h>
#include <google/protobuf/repeated_field.h>
#include <google/protobuf/unknown_field_set.h>

#endif  // WARPSMITH_CMAKE_PRECOMPILED_RPC_H_
