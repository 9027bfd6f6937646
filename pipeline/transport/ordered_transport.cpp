#include "pipeline/transport/ordered_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "framework/error.h"
#include "pipeline/transport/transport_over.h"

namespace antichain {
namespace {

class OrderedTransport : public TransportOver {
 public:
  OrderedTransport(Transport& below, std::unique_ptr<MessageStream> messages)
      : TransportOver(below), messages_(std::move(messages)) {
    job().activity().guard([this] { return messages_->failure(); });
  }
  ~OrderedTransport() override { job().activity().guard({}); }

  int lanes() const override { return messages_->lanes(); }

  void begin_step(std::span<const Turn> turns) override {
    ANTICHAIN_CHECK(all_issued(), "a step issues all its messages before the next one begins");
    items_.clear();
    for (const Turn& turn : turns) {
      ANTICHAIN_CHECK(turn.peer != rank() || turn.group != 0, "a message to itself is two turns of a group");
      items_.push_back({.turn = turn});
    }
    issued_ = 0;
  }

  void send(MessageKey key, int peer, Tensor tensor) override {
    make_ready({true, key, peer}, std::move(tensor));
  }
  Ticket recv(MessageKey key, int peer, Tensor into) override {
    return Ticket(make_ready({false, key, peer}, std::move(into)));
  }

  void wait(Ticket ticket) override {
    const Item& item = items_.at(size_t(ticket));
    ANTICHAIN_CHECK(item.done, "the order has a message before whatever needs it");
    messages_->compute_after(item.done);
    job().activity().beat();
  }
  bool arrived(Ticket ticket) override {
    const Item& item = items_.at(size_t(ticket));
    return item.done && messages_->reached(item.done);
  }

  // Otherwise the device would wait for peers that never come, and a call that frees memory for the device.
  void give_up() override { messages_->give_up(); }

  void progress() override { job().activity().beat(); }
  void serve() override {}

  // Abandoned messages end, too, and look delivered then; so failure() decides.
  void flush() override {
    ANTICHAIN_CHECK(all_issued(), "every message of the order was sent and received");
    for (Item& item : items_) {
      finish(item);
      item.tensor = {};
    }
    if (const std::string why = messages_->failure(); !why.empty())
      throw Error(fmt::format("rank {}'s messages did not all arrive: {}", rank(), why), "",
                  ExitCode::peer_failed);
  }

 private:
  struct Item {
    Turn turn;
    Tensor tensor{};         // kept until the message is delivered
    Moment after{}, done{};  // of computing; nullptr until it is ready, or issued
    bool ready = false;
  };

  bool all_issued() const { return issued_ == items_.size(); }

  // Returns the turn's place in the order, which is never far ahead of what was issued.
  size_t make_ready(const Turn& turn, Tensor tensor) {
    size_t i = issued_;
    const auto is_it = [&](const Item& item) {
      return !item.ready && item.turn.sends == turn.sends && item.turn.key == turn.key &&
             item.turn.peer == turn.peer;
    };
    while (i < items_.size() && !is_it(items_[i])) ++i;
    ANTICHAIN_CHECK(i < items_.size(),
                    fmt::format("{} {} rank {} is in the step's order of messages",
                                name_of(turn.key, turn.peer, rank()), turn.sends ? "to" : "from", turn.peer));
    items_[i].ready = true;
    items_[i].tensor = std::move(tensor);
    items_[i].after = messages_->computed();
    while (issued_ < items_.size() && issue()) {
    }
    return i;
  }

  int lane_of(const Item& item) const { return item.turn.lane % lanes(); }

  // Issues the next turn, or all of its group, and what is ready after it in the other lanes. Lanes don't
  // wait for each other, so each message ends as if it were alone.
  bool issue() {
    std::vector<bool> taken(static_cast<size_t>(lanes()));
    size_t end = issued_;
    for (size_t next = end; next < items_.size() && add(next, taken); next = end) end += together(next);
    if (end == issued_) return false;
    const std::vector<Moment> ends = messages_->exchange(halves_);
    halves_.clear();
    for (; issued_ < end; ++issued_) items_[issued_].done = ends[size_t(lane_of(items_[issued_]))];
    return true;
  }

  // Adds turns to the exchange, if all are ready and their lane is not taken.
  bool add(size_t first, std::vector<bool>& taken) {
    const std::span<Item> turns = std::span(items_).subspan(first, together(first));
    const size_t lane = size_t(lane_of(turns[0]));
    if (taken[lane] || !std::ranges::all_of(turns, &Item::ready)) return false;
    taken[lane] = true;
    for (const Item& i : turns) halves_.push_back({i.turn.sends, i.tensor, i.turn.peer, i.after, int(lane)});
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
      const auto& [sends, key, peer, group, lane] = item.turn;
      return fmt::format("{} {} rank {}", sends ? name_of(key, rank(), peer) : name_of(key, peer, rank()),
                         sends ? "to" : "from", peer);
    };
    poll(item.turn.peer, what, [&] { return messages_->reached(item.done); });
  }

  std::unique_ptr<MessageStream> messages_;
  std::vector<Item> items_;          // of the step, in the order
  std::vector<MessageHalf> halves_;  // of one exchange
  size_t issued_ = 0;                // the number of issued turns
};

}  // namespace

std::unique_ptr<Transport> make_ordered_transport(Transport& below, std::unique_ptr<MessageStream> messages) {
  return std::make_unique<OrderedTransport>(below, std::move(messages));
}

}  // namespace antichain
