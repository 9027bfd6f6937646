#include "pipeline/transport/staged_transport.h"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "framework/error.h"
#include "pipeline/transport/transport_over.h"

namespace antichain {
namespace {

// HostBuffers keeps page-locked memory, which is slow to allocate, for reuse. A buffer returns when its last
// owner, in whichever thread, releases it.
class HostBuffers : public std::enable_shared_from_this<HostBuffers> {
 public:
  explicit HostBuffers(CopyStream& copies) : copies_(copies) {}

  Tensor like(const Tensor& device) { return {device.spec(), take(device.bytes())}; }

 private:
  using Bytes = std::shared_ptr<std::byte>;

  Bytes take(int64_t bytes) {
    Bytes owned;
    {
      std::lock_guard lock(mutex_);
      if (auto& free = free_[bytes]; !free.empty()) {
        owned = std::move(free.back());
        free.pop_back();
      }
    }
    if (!owned) owned = copies_.page_locked(bytes);
    std::byte* raw = owned.get();
    const auto give_back = [home = weak_from_this(), owned = std::move(owned), bytes](std::byte*) mutable {
      if (const auto buffers = home.lock()) {
        std::lock_guard lock(buffers->mutex_);
        buffers->free_[bytes].push_back(std::move(owned));
      }
    };
    return {raw, give_back};
  }

  CopyStream& copies_;
  std::mutex mutex_;
  std::map<int64_t, std::vector<Bytes>> free_;  // by size
};

class StagedTransport : public TransportOver {
 public:
  StagedTransport(Transport& below, std::unique_ptr<CopyStream> copies)
      : TransportOver(below), copies_(std::move(copies)), buffers_(std::make_shared<HostBuffers>(*copies_)) {}

  void send(MessageKey key, int peer, Tensor tensor) override {
    const Tensor host = buffers_->like(tensor);
    const Moment copied = copies_->to_host(tensor, host, copies_->computed());
    leaving_.push_back({key, peer, std::move(tensor), host, copied});
    advance();
  }

  Ticket recv(MessageKey key, int peer, Tensor into) override {
    const Tensor host = buffers_->like(into);
    const Ticket below = below_.recv(key, peer, host);
    arriving_[++last_ticket_] = {below, std::move(into), host, copies_->computed(), nullptr};
    return last_ticket_;
  }

  void wait(Ticket ticket) override {
    const auto it = arriving_.find(ticket);
    ANTICHAIN_CHECK(it != arriving_.end(), "a receive is posted once and waited for once");
    // The copies need only work that this rank has started, so the device reaches them. The watchdog is not
    // told of a wait, and counts this time as the rank's own.
    while (!leaving_.empty() && !it->second.copied) {
      advance();
      std::this_thread::yield();
    }
    if (!it->second.copied) land(it->second);
    copies_->compute_after(it->second.copied);
    landing_.push_back(std::move(it->second));
    arriving_.erase(it);
  }

  bool arrived(Ticket ticket) override {
    advance();
    const auto it = arriving_.find(ticket);
    return it != arriving_.end() && it->second.copied;
  }

  void progress() override {
    advance();
    below_.progress();
  }

  void flush() override {
    hand_over();
    below_.flush();
  }

 private:
  struct Leaving {
    MessageKey key;
    int peer = 0;
    Tensor device, host;
    Moment copied;
  };
  struct Arriving {
    Ticket below = 0;
    Tensor into, host;
    Moment free, copied;  // the buffer on the device; nullptr until the copy was started
  };

  // Gives the transport below all that is to be sent, each as soon as its copy is done.
  void hand_over() {
    for (advance(); !leaving_.empty(); advance()) std::this_thread::yield();
  }

  void land(Arriving& a) {
    below_.wait(a.below);
    a.copied = copies_->to_device(a.host, a.into, a.free);
  }

  // Goes in the order of posting, because messages of one name arrive in the order of sending.
  void advance() {
    while (!leaving_.empty() && copies_->reached(leaving_.front().copied)) {
      below_.send(leaving_.front().key, leaving_.front().peer, std::move(leaving_.front().host));
      leaving_.pop_front();
    }
    for (auto& [ticket, a] : arriving_)
      if (!a.copied && below_.arrived(a.below)) land(a);
    std::erase_if(landing_, [&](const Arriving& a) { return copies_->reached(a.copied); });
  }

  std::unique_ptr<CopyStream> copies_;
  std::shared_ptr<HostBuffers> buffers_;
  std::deque<Leaving> leaving_;
  std::map<Ticket, Arriving> arriving_;
  std::vector<Arriving> landing_;  // copies to the device under way, which the host does not wait for
  Ticket last_ticket_ = 0;
};

}  // namespace

std::unique_ptr<Transport> make_staged_transport(Transport& below, std::unique_ptr<CopyStream> copies) {
  return std::make_unique<StagedTransport>(below, std::move(copies));
}

}  // namespace antichain
