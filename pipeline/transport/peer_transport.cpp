#include "pipeline/transport/peer_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <utility>

#include "framework/error.h"
#include "pipeline/transport/staged_transport.h"

namespace antichain {
namespace {

// A Note is the content of the small messages, which are in host memory.
struct Note {
  int64_t bytes = 0;  // of the buffer, or of what was sent
  PeerNote peer{};
};
Tensor room_for_note() { return Tensor::host({{int64_t(sizeof(Note))}, DType::u8}); }
Tensor in_message(const Note& note) {
  const Tensor message = room_for_note();
  std::memcpy(message.raw(), &note, sizeof note);
  return message;
}
Note note_in(const Tensor& message) {
  Note note;
  std::memcpy(&note, message.raw(), sizeof note);
  return note;
}

// These are the names in the transport below. A tensor, or the note that it has been copied, goes forth. The
// note that shares its buffer goes back, where another tensor may have the same name.
constexpr MessageKey meeting{0, 0};
MessageKey forth(MessageKey key) { return {2 * key.channel + 1, key.microbatch}; }
MessageKey back(MessageKey key) { return {2 * key.channel + 2, key.microbatch}; }

class PeerTransport : public CopyingTransport {
 public:
  PeerTransport(Transport& below, std::unique_ptr<PeerStream> peers, std::unique_ptr<CopyStream> copies,
                const PeerPairs& pairs)
      : CopyingTransport(below),
        peers_(std::move(peers)),
        staged_(make_staged_transport(below, std::move(copies))) {
    for (int peer = 0; peer < below.size(); ++peer) direct_.push_back(pairs.direct(below.rank(), peer));
    staged_->name_messages([this](MessageKey key, int from, int to) {
      return key.channel % 2 ? name_of({key.channel / 2, key.microbatch}, from, to)
                             : name_of({key.channel / 2 - 1, key.microbatch}, to, from);
    });
  }

  // While an exception is under way, peers may be gone, so this does not wait for them.
  ~PeerTransport() override {
    try {
      if (std::uncaught_exceptions() == 0) end();
    } catch (...) {  // a peer is gone, and the job ends for that
    }
    staged_->name_messages({});
  }

  void name_messages(Namer namer) override { Transport::name_messages(std::move(namer)); }

  void send(MessageKey key, int peer, Tensor tensor) override {
    if (!direct_[size_t(peer)]) return staged_->send(forth(key), peer, std::move(tensor));
    const Tensor shown = room_for_note();
    const Ticket below = below_.recv(back(key), peer, shown);
    leaving_.push_back({key, peer, std::move(tensor), peers_->computed(), shown, below, nullptr});
    advance();
  }

  Ticket recv(MessageKey key, int peer, Tensor into) override {
    Arriving a{.key = key, .peer = peer, .into = into};
    if (direct_[size_t(peer)]) {
      a.note = room_for_note();
      a.below = below_.recv(forth(key), peer, a.note);
      below_.send(back(key), peer, in_message({into.bytes(), peers_->show(peer, into)}));
    } else {
      a.below = staged_->recv(forth(key), peer, std::move(into));
    }
    arriving_[++last_ticket_] = std::move(a);
    return last_ticket_;
  }

  void wait(Ticket ticket) override {
    const auto it = arriving_.find(ticket);
    ANTICHAIN_CHECK(it != arriving_.end(), "a receive is posted once and waited for once");
    const auto key = it->second.key;
    const int peer = it->second.peer;
    poll(
        peer, [&] { return fmt::format("{} from rank {}", name_of(key, peer, rank()), peer); },
        [&] { return arrived(ticket); });
    Arriving a = std::move(it->second);
    arriving_.erase(it);
    if (!a.note) return staged_->wait(a.below);
    below_.wait(a.below);
    const Note note = note_in(a.note);
    if (note.bytes != a.into.bytes()) throw wrong_size(key, peer, a.into.bytes(), note.bytes);
    const Moment copied = peers_->written(peer, note.peer);
    peers_->compute_after(copied);
    landing_.push_back({std::move(a.into), copied});
  }

  bool arrived(Ticket ticket) override {
    advance();
    const auto it = arriving_.find(ticket);
    if (it == arriving_.end()) return false;
    return it->second.note ? below_.arrived(it->second.below) : staged_->arrived(it->second.below);
  }

  bool hand_on() override { return advance(); }
  bool begun(MessageKey key, int peer) const override {
    return std::ranges::none_of(
        leaving_, [&](const Leaving& l) { return !l.copied && l.key == key && l.peer == peer; });
  }
  void progress() override {
    advance();
    below_.progress();
  }

  void flush() override {
    const auto what = [&] {
      if (leaving_.empty()) return std::string("delivery of its own sends");
      const Leaving& first = leaving_.front();
      return fmt::format("delivery of the {} to rank {}", name_of(first.key, rank(), first.peer), first.peer);
    };
    poll(RankState::anybody, what, [&] { return advance() && leaving_.empty(); });
  }

 private:
  struct Leaving {
    MessageKey key;
    int peer = 0;
    Tensor tensor;
    Moment after;
    Tensor shown;  // where the buffer's note comes
    Ticket below = 0;
    Moment copied;  // nullptr until the copy was begun
  };
  struct Arriving {
    MessageKey key;
    int peer = 0;
    Tensor into, note;  // no note where it goes through host memory
    Ticket below = 0;
  };
  struct Landing {
    Tensor into;
    Moment copied;
  };

  bool advance() {
    for (size_t i = 0; i < leaving_.size(); ++i)
      if (!leaving_[i].copied && first_of_its_name(i) && below_.arrived(leaving_[i].below)) copy(leaving_[i]);
    std::erase_if(leaving_, [&](const Leaving& l) { return l.copied && peers_->reached(l.copied); });
    std::erase_if(landing_, [&](const Landing& l) { return peers_->reached(l.copied); });
    return staged_->hand_on();
  }

  // Messages of one name arrive in the order of sending.
  bool first_of_its_name(size_t i) const {
    return std::none_of(leaving_.begin(), leaving_.begin() + int64_t(i), [&](const Leaving& l) {
      return !l.copied && l.key == leaving_[i].key && l.peer == leaving_[i].peer;
    });
  }

  void copy(Leaving& l) {
    below_.wait(l.below);
    const Note shown = note_in(l.shown);
    Note done{.bytes = l.tensor.bytes()};
    if (shown.bytes == done.bytes)
      l.copied = peers_->write(l.peer, l.tensor, shown.peer, l.after, done.peer);
    else
      l.copied = l.after;  // a wrong size, which the receiver reports
    below_.send(forth(l.key), l.peer, in_message(done));
  }

  // Waits until every rank is here, and goes on copying meanwhile.
  void meet() {
    std::vector<Ticket> coming;
    const auto all_came = [&] {
      advance();
      return std::ranges::all_of(coming, [&](Ticket t) { return below_.arrived(t); });
    };
    const auto from = [&](int peer) { coming.push_back(below_.recv(meeting, peer, room_for_note())); };
    const auto wait_for_all = [&] {
      poll(
          RankState::anybody, [] { return std::string("other ranks that have not come to a common point"); },
          all_came);
      for (const Ticket t : coming) below_.wait(t);
    };
    if (rank() > 0) {
      below_.send(meeting, 0, in_message({}));
      from(0);
      return wait_for_all();
    }
    for (int peer = 1; peer < size(); ++peer) from(peer);
    wait_for_all();
    for (int peer = 1; peer < size(); ++peer) below_.send(meeting, peer, in_message({}));
  }

  // A shared buffer is freed when all others have closed it.
  void end() {
    flush();
    poll(
        RankState::anybody, [] { return std::string("copies that are on their way here"); },
        [&] { return advance() && landing_.empty(); });
    meet();  // so that nobody waits for a copy that goes into what is closed next
    peers_->close();
    meet();
    peers_->all_closed();
  }

  std::unique_ptr<PeerStream> peers_;
  std::unique_ptr<StagedTransport> staged_;
  std::vector<bool> direct_;  // by peer
  std::vector<Leaving> leaving_;
  std::map<Ticket, Arriving> arriving_;
  std::vector<Landing> landing_;
  Ticket last_ticket_ = 0;
};

}  // namespace

std::unique_ptr<CopyingTransport> make_peer_transport(Transport& below, std::unique_ptr<PeerStream> peers,
                                                      std::unique_ptr<CopyStream> copies,
                                                      const PeerPairs& pairs) {
  return std::make_unique<PeerTransport>(below, std::move(peers), std::move(copies), pairs);
}

}  // namespace antichain
