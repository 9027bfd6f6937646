// This file copies into the memory of other ranks' devices. Between processes, memory and events are shared
// by CUDA IPC. Threads of one process, where a handle can't be opened, share addresses.
//
// Every buffer that is shared with a peer has a slot for this pair of ranks, with two events: the receiver's
// (the buffer is free) and the sender's (the copy is done). Both are recorded repeatedly, each only when the
// other rank's host has issued its wait for the last recording. The receiver reuses a slot only after it has
// seen the copy done, which comes after the buffer was free. The sender records only when the slot has been
// shared again. The wait itself may still be pending on the device then. CUDA's reference says that it
// belongs to the recording it was issued for (cudaStreamWaitEvent); otherwise steps would hang.
#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>
#include <vector>

#include "framework/backend.h"
#include "framework/cuda/resources.h"
#include "pipeline/cuda/events.h"
#include "pipeline/cuda/ipc.h"
#include "pipeline/cuda/streams.h"

namespace antichain::cuda {
namespace {

// A Card is a note's content: addresses within a process, places and handles between two.
struct Card {
  uint64_t slot = 0;
  std::byte* memory = nullptr;
  cudaEvent_t event = nullptr;
  SharedTensor place;
  cudaIpcEventHandle_t event_handle{};
};

PeerNote to_note(const Card& card) { return std::bit_cast<PeerNote>(card); }
Card to_card(const PeerNote& note) { return std::bit_cast<Card>(note); }

// A Trial is what another process tests before anything depends on sharing: two tensors that CUDA may have
// put into one block, which detects a handle that means the whole block, and an event.
struct Trial {
  SharedTensor places[2];
  cudaIpcEventHandle_t event{};
  std::byte content[2][32] = {};
};

std::string to_hex(const Trial& trial) {
  std::string text;
  for (const auto* p = reinterpret_cast<const unsigned char*>(&trial); text.size() < 2 * sizeof trial; ++p)
    text += fmt::format("{:02x}", *p);
  return text;
}
Trial from_hex(const std::string& text) {
  ANTICHAIN_CHECK(text.size() == 2 * sizeof(Trial), "ranks are of one version");
  Trial trial;
  auto* const bytes = reinterpret_cast<unsigned char*>(&trial);
  for (size_t i = 0; i < sizeof trial; ++i)
    bytes[i] = static_cast<unsigned char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  return trial;
}

// Returns "" or the error, and clears it as CUDA's last error.
std::string failure_of(const char* what, cudaError_t code) {
  if (code == cudaSuccess) return "";
  cudaGetLastError();
  return fmt::format("{}: {}", what, cudaGetErrorString(code));
}

struct Window {  // a slot at the receiver
  explicit Window(bool between_processes) : free(between_processes) {}
  SharedEvent free;
  cudaEvent_t copied = nullptr;  // the sender's, known from its first note
};
struct Door {  // a slot at the sender
  explicit Door(bool between_processes) : copied(between_processes) {}
  SharedEvent copied;
  cudaEvent_t free = nullptr;  // the receiver's
};

// A Lane is everything between this rank and one peer. It has its own stream, so that waiting for a buffer
// delays no other peer.
struct Lane {
  bool same_process = false;
  SideStream stream;
  std::deque<Window> windows;
  std::vector<uint64_t> idle;  // windows whose last copy is known to be done
  std::map<uint64_t, Door> doors;
  OpenedMemory opened;
};

struct Shared {
  Tensor trial[2];
  std::optional<SharedEvent> trial_event;
  ShownMemory shown;
  std::map<int, Lane> lanes;
};

// Peers may still use these resources, so they are kept until the process ends and are never destroyed.
void leave_to_the_end(std::shared_ptr<Shared> shared) {
  static std::mutex mutex;
  static auto* const left = new std::vector<std::shared_ptr<Shared>>;
  std::lock_guard lock(mutex);
  left->push_back(std::move(shared));
}

class CudaPeers : public PeerStream {
 public:
  CudaPeers(const Context& context, std::string process)
      : context_(context), device_(resources(context).device), process_(std::move(process)) {}
  ~CudaPeers() override {
    if (!all_closed_) leave_to_the_end(std::move(shared_));
  }

  Moment computed() override { return events_->in(compute()); }
  void compute_after(const Moment& moment) override { wait_for(compute(), moment); }
  bool reached(const Moment& moment) override { return has_come(moment); }

  std::string introduction() override {
    int shares = 0;
    ANTICHAIN_CUDA(cudaDeviceGetAttribute(&shares, cudaDevAttrIpcEventSupport, device_));
    std::string trial;
    if (shares) try {
        trial = to_hex(make_trial());
      } catch (const Error& error) {
        cudaGetLastError();
        return fmt::format("{} {} - {}", process_, device_, error.what());
      }
    if (!shares) return fmt::format("{} {} - it shares no events between processes", process_, device_);
    return fmt::format("{} {} {}", process_, device_, trial);
  }

  std::string reach(int peer, const std::string& introduction) override {
    std::istringstream in(introduction);
    std::string process, trial, why;
    int device = 0;
    in >> process >> device >> trial >> std::ws;
    std::getline(in, why);
    Lane& lane = shared_->lanes[peer];
    lane.same_process = process == process_;
    if (lane.same_process) return access_to(device);
    return trial == "-" ? why : open(lane, from_hex(trial));
  }

  PeerNote show(int peer, const Tensor& into) override {
    Lane& lane = shared_->lanes.at(peer);
    if (lane.idle.empty()) {
      lane.idle.push_back(lane.windows.size());
      lane.windows.emplace_back(!lane.same_process);
    }
    Card card{.slot = lane.idle.back()};
    lane.idle.pop_back();
    const SharedEvent& free = lane.windows[card.slot].free;
    ANTICHAIN_CUDA(cudaEventRecord(free, compute()));
    if (lane.same_process)
      card.memory = into.raw(), card.event = free;
    else
      card.place = shared_->shown.place_of(into), card.event_handle = free.handle();
    return to_note(card);
  }

  Moment write(int peer, const Tensor& from, const PeerNote& shown, const Moment& after,
               PeerNote& written) override {
    Lane& lane = shared_->lanes.at(peer);
    const Card card = to_card(shown);
    Door& door = lane.doors.try_emplace(card.slot, !lane.same_process).first->second;
    know(lane, card, door.free);
    std::byte* const to = lane.same_process ? card.memory : lane.opened.at(card.place);
    wait_for(lane.stream, after);
    ANTICHAIN_CUDA(cudaStreamWaitEvent(lane.stream, door.free, 0));
    ANTICHAIN_CUDA(
        cudaMemcpyAsync(to, from.raw(), size_t(from.bytes()), cudaMemcpyDeviceToDevice, lane.stream));
    ANTICHAIN_CUDA(cudaEventRecord(door.copied, lane.stream));
    Card answer{.slot = card.slot};
    if (lane.same_process)
      answer.event = door.copied;
    else
      answer.event_handle = door.copied.handle();
    written = to_note(answer);
    return events_->in(lane.stream);
  }

  Moment written(int peer, const PeerNote& note) override {
    Lane& lane = shared_->lanes.at(peer);
    const Card card = to_card(note);
    Window& window = lane.windows.at(card.slot);
    know(lane, card, window.copied);
    return {window.copied, [home = std::weak_ptr(shared_), peer, slot = card.slot](void*) {
              if (const auto shared = home.lock()) shared->lanes.at(peer).idle.push_back(slot);
            }};
  }

  // When another rank's event is destroyed, nothing waits for it any more. Nothing is copied into closed
  // memory.
  void close() override {
    ANTICHAIN_CUDA(cudaStreamSynchronize(compute()));
    for (auto& [peer, lane] : shared_->lanes) {
      ANTICHAIN_CUDA(cudaStreamSynchronize(lane.stream));
      lane.opened.close();
      if (lane.same_process) continue;
      for (Window& window : lane.windows)
        if (window.copied) cudaEventDestroy(window.copied);
      for (auto& [slot, door] : lane.doors) cudaEventDestroy(door.free);
    }
  }
  void all_closed() override { all_closed_ = true; }

 private:
  // The stream that the context computes in now.
  cudaStream_t compute() const { return stream_of(context_); }

  Trial make_trial() {
    Trial trial;
    const Tensor host = Tensor::host({{int64_t(sizeof trial.content[0])}, DType::u8});
    for (int i = 0; i < 2; ++i) {
      for (size_t k = 0; k < sizeof trial.content[i]; ++k)
        trial.content[i][k] = std::byte(process_[k % process_.size()] + 50 * i);
      shared_->trial[i] = context_.backend().tensor(host.spec());
      std::memcpy(host.raw(), trial.content[i], size_t(host.bytes()));
      context_.backend().copy(context_, host, shared_->trial[i]);
      trial.places[i] = shared_->shown.place_of(shared_->trial[i]);
    }
    shared_->trial_event.emplace(true);
    ANTICHAIN_CUDA(cudaEventRecord(*shared_->trial_event, compute()));
    trial.event = shared_->trial_event->handle();
    return trial;
  }

  // Within one process, CUDA would copy through the host between devices that can't reach each other.
  std::string access_to(int device) const {
    if (device == device_) return "";
    int can = 0;
    ANTICHAIN_CUDA(cudaDeviceCanAccessPeer(&can, device_, device));
    if (!can) return "there is no peer access between the two GPUs";
    const cudaError_t code = cudaDeviceEnablePeerAccess(device, 0);
    if (code == cudaErrorPeerAccessAlreadyEnabled) return cudaGetLastError(), "";
    return failure_of("peer access", code);
  }

  std::string open(Lane& lane, const Trial& trial) const {
    cudaEvent_t event = nullptr;
    std::string failure =
        failure_of("CUDA IPC, opening an event", cudaIpcOpenEventHandle(&event, trial.event));
    if (!failure.empty()) return failure;
    failure = failure_of("CUDA IPC, waiting for an event", cudaStreamWaitEvent(lane.stream, event, 0));
    for (int i = 0; i < 2 && failure.empty(); ++i) failure = look(lane, trial.places[i], trial.content[i]);
    cudaEventDestroy(event);
    return failure;
  }

  std::string look(Lane& lane, const SharedTensor& place, const std::byte (&content)[32]) const {
    std::byte *there = nullptr, here[32];
    std::string failure = failure_of("CUDA IPC, opening memory", lane.opened.open(place, there));
    if (failure.empty())
      failure = failure_of("CUDA IPC, reading memory",
                           cudaMemcpyAsync(here, there, sizeof here, cudaMemcpyDeviceToHost, lane.stream));
    if (failure.empty()) failure = failure_of("CUDA IPC, reading memory", cudaStreamSynchronize(lane.stream));
    if (failure.empty() && std::memcmp(here, content, sizeof here) != 0)
      failure = "CUDA IPC, what it opens is other memory";
    return failure;
  }

  // A slot's events stay the same.
  static void know(const Lane& lane, const Card& card, cudaEvent_t& event) {
    if (lane.same_process)
      event = card.event;
    else if (!event)
      ANTICHAIN_CUDA(cudaIpcOpenEventHandle(&event, card.event_handle));
  }

  const Context& context_;
  const int device_;
  const std::string process_;
  std::shared_ptr<Events> events_ = std::make_shared<Events>();
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  bool all_closed_ = false;
};

}  // namespace

std::unique_ptr<PeerStream> make_peer_stream(const Context& context, const std::string& process) {
  return std::make_unique<CudaPeers>(context, process);
}

}  // namespace antichain::cuda
