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
    for (const Turn& turn : turns) items_.push_back({turn});
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

  bool issue() {
    Item& item = items_[issued_];
    if (!item.after) return false;
    if (item.turn.peer == rank()) return issue_to_itself(item);
    const MessageHalf one[] = {half(item)};
    item.done = messages_->exchange(one);
    ++issued_;
    return true;
  }

  // A message from a rank to itself is two turns, one right behind the other, and one piece of work.
  bool issue_to_itself(Item& send) {
    ANTICHAIN_CHECK(send.turn.verb == Verb::send && issued_ + 1 < items_.size(), "its recv follows");
    Item& recv = items_[issued_ + 1];
    ANTICHAIN_CHECK(recv.turn.verb == Verb::recv && recv.turn.key == send.turn.key, "its recv follows");
    if (!recv.after) return false;
    const MessageHalf both[] = {half(send), half(recv)};
    send.done = recv.done = messages_->exchange(both);
    issued_ += 2;
    return true;
  }

  static MessageHalf half(const Item& item) {
    return {item.turn.verb == Verb::send, item.tensor, item.turn.peer, item.after};
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
  std::vector<Item> items_;  // of the step, in the order
  size_t issued_ = 0;        // so many from the begin
};

}  // namespace

std::unique_ptr<Transport> make_ordered_transport(Transport& job, std::unique_ptr<MessageStream> messages) {
  return std::make_unique<OrderedTransport>(job, std::move(messages));
}

}  // namespace antichain
