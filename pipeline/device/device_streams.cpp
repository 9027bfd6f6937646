#include "pipeline/device/device_streams.h"

#include <map>
#include <mutex>
#include <utility>

#include "framework/module.h"

namespace antichain {
namespace {

struct Registry {
  std::mutex mutex;  // ranks may be threads
  std::map<std::string, DeviceStreams, std::less<>> streams;
  std::map<std::string, DeviceMessages, std::less<>> messages;
};
Registry& registry() {
  static Registry of_process;  // holds functions only, no resources of a device
  return of_process;
}

template <class Offers>
const typename Offers::mapped_type* find(const Offers& offers, std::string_view backend) {
  std::lock_guard lock(registry().mutex);
  const auto found = offers.find(backend.substr(0, backend.find(':')));
  return found == offers.end() ? nullptr : &found->second;
}

}  // namespace

void register_device_streams(const std::string& device, DeviceStreams streams) {
  std::lock_guard lock(registry().mutex);
  registry().streams.try_emplace(device, std::move(streams));
}

const DeviceStreams* device_streams(std::string_view backend) { return find(registry().streams, backend); }

void register_device_messages(const std::string& device, DeviceMessages messages) {
  std::lock_guard lock(registry().mutex);
  registry().messages.try_emplace(device, std::move(messages));
}

const DeviceMessages* device_messages(std::string_view backend, std::string& why_not) {
  if (const DeviceMessages* known = find(registry().messages, backend)) return known;
  why_not = load_module("nccl");
  const DeviceMessages* loaded = why_not.empty() ? find(registry().messages, backend) : nullptr;
  if (!loaded && why_not.empty()) why_not = "it knows no such device";
  return loaded;
}

}  // namespace antichain
