#include "pipeline/ordered_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "framework/error.h"
#include "pipeline/transport_over.h"

namespace antichain {
namespace {

class OrderedTransport : public TransportOver {
 public:
  OrderedTransport(Transport& job, std::unique_ptr<MessageStream> messages)
      : TransportOver(job), messages_(std::move(messages)) {
    activity().guard([this] { return messages_->failure(); });
  }
  ~OrderedTransport() override { activity().guard({}); }

  bool ordered() const override { return true; }

  void begin_step(std::span<const Turn> turns) override {
    ANTICHAIN_CHECK(issued_ == items_.size(), "a step issues all its messages before the next one begins");
    items_.clear();
    for (const Turn& turn : turns) {
      ANTICHAIN_CHECK(turn.peer != rank() || turn.group != 0, "a message to itself is two turns of a group");
      items_.push_back({turn});
    }
    issued_ = 0;
  }

  void send(MessageKey key, int peer, Tensor tensor) override {
    make_ready({Verb::send, key, peer}, std::move(tensor));
  }
  Ticket recv(MessageKey key, int peer, Tensor into) override {
    return Ticket(make_ready({Verb::recv, key, peer}, std::move(into)));
  }

  void wait(Ticket ticket) override {
    const Item& item = items_.at(size_t(ticket));
    ANTICHAIN_CHECK(item.done, "the order has a message before whatever needs it");
    messages_->compute_after(item.done);
    activity().beat();
  }
  bool arrived(Ticket ticket) override {
    const Item& item = items_.at(size_t(ticket));
    return item.done && messages_->reached(item.done);
  }

  // The device would wait for peers that never come, and who frees memory for the device.
  void give_up() override { messages_->give_up(); }

  void progress() override { activity().beat(); }

  void flush() override {
    ANTICHAIN_CHECK(issued_ == items_.size(), "every message of the order was sent and received");
    for (Item& item : items_) {
      finish(item);
      item.tensor = {};
    }
  }

 private:
  struct Item {
    Turn turn;
    Tensor tensor;         // kept until the message is delivered
    Moment after, done{};  // of computing; nullptr until it is ready, or issued
  };

  // The turn's place in the order. Turns are few steps ahead of what was issued, never far.
  size_t make_ready(const Turn& turn, Tensor tensor) {
    size_t i = issued_;
    const auto is_it = [&](const Item& item) {
      return !item.after && item.turn.verb == turn.verb && item.turn.key == turn.key &&
             item.turn.peer == turn.peer;
    };
    while (i < items_.size() && !is_it(items_[i])) ++i;
    ANTICHAIN_CHECK(i < items_.size(), fmt::format("{} {} rank {} is in the step's order of messages",
                                                   name_of(turn.key, turn.peer, rank()),
                                                   turn.verb == Verb::send ? "to" : "from", turn.peer));
    items_[i].tensor = std::move(tensor);
    items_[i].after = messages_->computed();
    while (issued_ < items_.size() && issue()) {
    }
    return i;
  }

  // The next turn, or all of its group.
  bool issue() {
    const std::span<Item> next = std::span(items_).subspan(issued_, together(issued_));
    if (!std::ranges::all_of(next, [](const Item& item) { return item.after != nullptr; })) return false;
    for (const Item& item : next)
      halves_.push_back({item.turn.verb == Verb::send, item.tensor, item.turn.peer, item.after});
    const Moment done = messages_->exchange(halves_);
    halves_.clear();
    for (Item& item : next) item.done = done;
    issued_ += next.size();
    return true;
  }

  size_t together(size_t first) const {
    size_t end = first + 1;
    const int group = items_[first].turn.group;
    while (group != 0 && end < items_.size() && items_[end].turn.group == group) ++end;
    return end - first;
  }

  void finish(const Item& item) {
    const auto what = [&] {
      const auto& [verb, key, peer, group] = item.turn;
      const bool sends = verb == Verb::send;
      return fmt::format("{} {} rank {}", sends ? name_of(key, rank(), peer) : name_of(key, peer, rank()),
                         sends ? "to" : "from", peer);
    };
    poll(item.turn.peer, what, [&] { return messages_->reached(item.done); });
  }

  std::unique_ptr<MessageStream> messages_;
  std::vector<Item> items_;          // of the step, in the order
  std::vector<MessageHalf> halves_;  // of one exchange
  size_t issued_ = 0;                // so many from the begin
};

}  // namespace

std::unique_ptr<Transport> make_ordered_transport(Transport& job, std::unique_ptr<MessageStream> messages) {
  return std::make_unique<OrderedTransport>(job, std::move(messages));
}

}  // namespace antichain
