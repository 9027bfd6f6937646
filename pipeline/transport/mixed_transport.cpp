#include "pipeline/transport/mixed_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/transport/transport_over.h"

namespace antichain {
namespace {

class MixedTransport : public TransportOver {
 public:
  MixedTransport(Transport& below, std::unique_ptr<CopyingTransport> near,
                 std::unique_ptr<MessagesInOrder> far, const PeerPairs& pairs)
      : TransportOver(below), pairs_(pairs), near_(std::move(near)), far_(std::move(far)) {}

  void name_messages(Namer namer) override {
    far_->Transport::name_messages(namer);  // which does not name the job's messages: those are near_'s notes
    near_->name_messages(namer);
    Transport::name_messages(std::move(namer));
  }

  bool ordered() const override { return true; }
  std::optional<int> lane_between(int from, int to, int lane) const override {
    return pairs_.direct(from, to) ? std::nullopt : far_->lane_between(from, to, lane);
  }
  void begin_step(std::span<const Turn> turns) override {
    std::vector<bool> elsewhere;
    for (const Turn& turn : turns) elsewhere.push_back(is_near(turn.peer));
    far_->begin_step(turns, elsewhere);
  }

  void send(MessageKey key, int peer, Tensor tensor) override {
    if (!is_near(peer)) return far_->send(key, peer, std::move(tensor));
    near_->send(key, peer, std::move(tensor));
    leaving_.push_back({key, peer});
    advance();
  }
  Ticket recv(MessageKey key, int peer, Tensor into) override {
    if (!is_near(peer)) return 2 * far_->recv(key, peer, std::move(into));
    const Ticket ticket = near_->recv(key, peer, std::move(into));
    far_->passed(false, key, peer);
    return 2 * ticket + 1;
  }
  void wait(Ticket ticket) override {
    const bool near = ticket % 2;
    const auto what = [&] {
      if (near || leaving_.empty()) return std::string("copy of a tensor from a rank of this host");
      const Leaving& first = leaving_.front();
      return fmt::format("buffer for the {} on rank {}", name_of(first.key, rank(), first.peer), first.peer);
    };
    poll(RankState::anybody, what, [&] {
      advance();
      return near ? near_->arrived(ticket / 2) : far_->issued(ticket / 2);
    });
    near ? near_->wait(ticket / 2) : far_->wait(ticket / 2);
  }
  bool arrived(Ticket ticket) override {
    advance();
    return ticket % 2 ? near_->arrived(ticket / 2) : far_->arrived(ticket / 2);
  }

  void progress() override {
    near_->progress();
    advance();
  }
  void serve() override { advance(); }
  void flush() override {
    poll(
        RankState::anybody, [] { return std::string("buffers on other ranks of this host"); },
        [&] {
          advance();
          return far_->all_issued();
        });
    near_->flush();
    far_->flush();
  }
  void give_up() override {
    far_->give_up();
    near_->give_up();
  }

 private:
  struct Leaving {
    MessageKey key;
    int peer = 0;
  };

  bool is_near(int peer) const { return pairs_.direct(rank(), peer); }

  // Begins what can begin, and lets later turns pass.
  void advance() {
    near_->hand_on();
    std::erase_if(leaving_, [&](const Leaving& l) {
      if (!near_->begun(l.key, l.peer)) return false;
      far_->passed(true, l.key, l.peer);
      return true;
    });
  }

  const PeerPairs pairs_;
  std::unique_ptr<CopyingTransport> near_;
  std::unique_ptr<MessagesInOrder>
      far_;                       // destroyed first: near_'s end serves the others until all are there
  std::vector<Leaving> leaving_;  // copies that have not begun
};

}  // namespace

std::unique_ptr<Transport> make_mixed_transport(Transport& below, std::unique_ptr<CopyingTransport> near,
                                                std::unique_ptr<MessagesInOrder> far,
                                                const PeerPairs& pairs) {
  return std::make_unique<MixedTransport>(below, std::move(near), std::move(far), pairs);
}

}  // namespace antichain
