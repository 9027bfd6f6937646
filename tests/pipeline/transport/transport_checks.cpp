#include "tests/pipeline/transport/transport_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "framework/error.h"

namespace antichain::test {
namespace {

constexpr int64_t mebibyte = 1 << 20;

// Each seed has a pattern of its own; the odd multiplier makes neighbouring words differ.
void fill(const Tensor& tensor, uint32_t seed) {
  const int64_t words = tensor.bytes() / 4;
  for (int64_t i = 0; i < words; ++i) {
    const uint32_t word = (uint32_t(i) + seed) * 2654435761u;
    std::memcpy(tensor.raw() + 4 * i, &word, 4);
  }
  std::memset(tensor.raw() + 4 * words, int(seed % 251), size_t(tensor.bytes() % 4));
}

Tensor empty(int64_t bytes) { return Tensor::host({{bytes}, DType::u8}); }
Tensor filled(int64_t bytes, uint32_t seed) {
  Tensor tensor = empty(bytes);
  fill(tensor, seed);
  return tensor;
}

void expect_filled(const Tensor& tensor, uint32_t seed, const std::string& what) {
  const Tensor expected = filled(tensor.bytes(), seed);
  if (std::memcmp(expected.raw(), tensor.raw(), size_t(tensor.bytes())) != 0)
    throw Error(what + " arrived with other bytes than were sent");
}

struct Planned {
  int from, to;
  MessageKey key;
  int64_t bytes;
  uint32_t seed;
};

// Every rank draws the same list: all pairs, three channels, two micro-batches, uneven sizes, some of them
// tiny.
std::vector<Planned> draw_messages(int ranks, std::mt19937& random) {
  std::vector<Planned> messages;
  for (int from = 0; from < ranks; ++from)
    for (int to = 0; to < ranks; ++to)
      for (int i = 0; i < 6; ++i) {
        if (from == to) continue;
        const int64_t bytes = i % 4 == 3 ? 1 + int64_t(random() % 100) : mebibyte + int64_t(random() % 4099);
        messages.push_back({from, to, {i / 2, i % 2}, bytes, uint32_t(random())});
      }
  return messages;
}

enum class Posting { receives_first, sends_first, mixed };

struct Awaited {
  Planned message;
  Transport::Ticket ticket;
  Tensor tensor;
};

std::vector<Awaited> post(Transport& transport, const std::vector<Planned>& messages) {
  std::vector<Awaited> awaited;
  for (const Planned& m : messages) {
    if (m.from == transport.rank()) {
      transport.send(m.key, m.to, filled(m.bytes, m.seed));
    } else {
      const Tensor into = empty(m.bytes);
      awaited.push_back({m, transport.recv(m.key, m.from, into), into});
    }
    if (m.seed % 3 == 0) transport.progress();
  }
  return awaited;
}

void storm(Transport& transport, Posting posting, uint32_t seed) {
  std::mt19937 common(seed), own(seed * 31 + uint32_t(transport.rank()));
  for (int round = 0; round < 3; ++round) {  // the same keys in every round
    std::vector<Planned> mine;
    for (const Planned& m : draw_messages(transport.size(), common))
      if (m.from == transport.rank() || m.to == transport.rank()) mine.push_back(m);
    std::shuffle(mine.begin(), mine.end(), own);
    if (posting != Posting::mixed)
      std::stable_partition(mine.begin(), mine.end(), [&](const Planned& m) {
        return (m.to == transport.rank()) == (posting == Posting::receives_first);
      });
    std::vector<Awaited> awaited = post(transport, mine);
    if (round == 1) transport.flush();  // delivered to receives that are posted but not yet waited for
    std::shuffle(awaited.begin(), awaited.end(), own);
    for (const Awaited& a : awaited) {
      transport.wait(a.ticket);
      expect_filled(a.tensor, a.message.seed,
                    fmt::format("channel {} micro-batch {} of rank {}", a.message.key.channel,
                                a.message.key.microbatch, a.message.from));
    }
    transport.flush();
  }
}

// Two messages of one key under way at once arrive in the order of sending, in the order of posting.
void equal_keys_keep_their_order(Transport& transport) {
  const int n = transport.size(), next = (transport.rank() + 1) % n,
            previous = (transport.rank() + n - 1) % n;
  if (n == 1) return;
  std::vector<Tensor> into;
  std::vector<Transport::Ticket> tickets;
  for (uint32_t i = 0; i < 4; ++i) {
    into.push_back(empty(mebibyte));
    tickets.push_back(transport.recv({5, 1}, previous, into.back()));
    transport.send({5, 1}, next, filled(mebibyte, i));
  }
  for (size_t i = 4; i-- > 0;) transport.wait(tickets[i]);
  for (uint32_t i = 0; i < 4; ++i) expect_filled(into[i], i, fmt::format("message {} of one key", i));
  transport.flush();
}

// Around a ring, everybody sends before anybody receives: blocking sends of this size would hang.
void ring_of_sends_before_receives(Transport& transport) {
  const int n = transport.size(), next = (transport.rank() + 1) % n,
            previous = (transport.rank() + n - 1) % n;
  if (n == 1) return;
  for (int round = 0; round < 5; ++round) {
    transport.send({0, round}, next, filled(4 * mebibyte, uint32_t(transport.rank())));
    const Tensor into = empty(4 * mebibyte);
    transport.wait(transport.recv({0, round}, previous, into));
    expect_filled(into, uint32_t(previous), "the ring's message");
  }
  transport.flush();
}

// A rank that waits in a collective still takes in what it posted receives for: its peer's flush returns.
void flush_while_the_peer_is_in_a_barrier(Transport& transport) {
  const int n = transport.size();
  if (n == 1) return transport.flush();
  Tensor into = empty(2 * mebibyte);
  Transport::Ticket ticket = 0;
  if (transport.rank() == 0) ticket = transport.recv({1, 0}, n - 1, into);
  if (transport.rank() == n - 1) {
    transport.send({1, 0}, 0, filled(2 * mebibyte, 8));
    transport.flush();
  }
  transport.job().barrier();
  if (transport.rank() == 0) {
    transport.wait(ticket);
    expect_filled(into, 8, "the flushed message");
  }
}

void broadcasts(Transport& transport) {
  for (int root = 0; root < transport.size(); ++root)
    for (const size_t bytes : {size_t(0), size_t(1), size_t(5'000'003)}) {
      const std::string text(bytes, char('a' + root));
      const std::string given = transport.rank() == root ? text : "ignored on every rank but the root";
      ANTICHAIN_CHECK(transport.job().broadcast(given, root) == text, "all ranks hold the root's bytes");
    }
}

void gathers(Transport& transport) {
  const auto text = [](int rank, int round) {
    return std::string(size_t(rank * 300'001 + round) % 700'000, char('A' + rank));
  };
  for (int round = 0; round < 3; ++round) {
    const auto all = transport.job().gather(text(transport.rank(), round));
    ANTICHAIN_CHECK(int(all.size()) == (transport.rank() == 0 ? transport.size() : 0), "only rank 0 gathers");
    for (int r = 0; r < int(all.size()); ++r)
      ANTICHAIN_CHECK(all[size_t(r)] == text(r, round), "each rank's own text, in rank order");
  }
}

void collectives_in_a_row(Transport& transport) {
  for (int i = 0; i < 50; ++i) {
    transport.job().barrier();
    const std::string sum = transport.job().broadcast(std::to_string(transport.job().gather("x").size()));
    ANTICHAIN_CHECK(sum == std::to_string(transport.size()), "one text per rank");
  }
}

// Both ways round: the message is larger than the receive, or smaller. The larger one is short, because Open
// MPI copies a long one out of its sender's memory as a whole, over whatever lies behind the receive.
void sizes_that_differ_are_an_error(Transport& transport) {
  if (transport.size() == 1) return;
  for (const int64_t more : {4, -4}) {
    const int64_t expected = more > 0 ? 1024 : mebibyte;
    if (transport.rank() == 0) transport.send({2, 3}, 1, filled(expected + more, 1));
    if (transport.rank() == 1) {
      std::string sentence;
      try {
        transport.wait(transport.recv({2, 3}, 0, empty(expected)));
      } catch (const Error& error) {
        sentence = error.what();
      }
      for (const std::string& words : {fmt::format("rank 1 expects {} bytes", expected),
                                       std::string("channel 2, micro-batch 3"), std::string("from rank 0")})
        if (sentence.find(words) == std::string::npos)
          throw Error(fmt::format("'{}' is not in the error of a wrong size: '{}'", words, sentence));
    }
    transport.flush();
    transport.job().barrier();
  }
}

// Letters come in order, from every rank to every rank, also to itself, while tensors are under way. Nobody
// waits for a letter to be taken: all are posted before the first is.
void letters(Transport& transport) {
  Job& job = transport.job();
  const int rank = job.rank(), size = job.size();
  const auto text = [](int from, int to, int i) {
    return fmt::format("{} to {}, {}", from, to, std::string(size_t(i * i * 1000), char('a' + i)));
  };
  std::vector<Transport::Ticket> tickets;
  std::vector<Tensor> there;
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    there.push_back(empty(mebibyte));
    tickets.push_back(transport.recv({7, 0}, peer, there.back()));
    transport.send({7, 0}, peer, filled(mebibyte, uint32_t(rank)));
  }
  for (int i = 0; i < 10; ++i)
    for (int to = 0; to < size; ++to) job.post(to, text(rank, to, i));
  for (int i = 0; i < 10; ++i)
    for (int from = size; from-- > 0;)
      if (const std::string letter = job.take(from); letter != text(from, rank, i))
        throw Error(fmt::format("letter {} from rank {} is \"{}\"", i, from, letter.substr(0, 20)));
  for (const Transport::Ticket ticket : tickets) transport.wait(ticket);
  transport.flush();
  job.barrier();
}

constexpr TransportCheck checks[] = {
    {"StormReceivesFirst", [](Transport& t) { storm(t, Posting::receives_first, 1); }},
    {"StormSendsFirst", [](Transport& t) { storm(t, Posting::sends_first, 2); }},
    {"StormMixed", [](Transport& t) { storm(t, Posting::mixed, 3); }},
    {"EqualKeysKeepTheirOrder", equal_keys_keep_their_order},
    {"RingOfSendsBeforeReceives", ring_of_sends_before_receives},
    {"FlushWhileThePeerIsInABarrier", flush_while_the_peer_is_in_a_barrier},
    {"Broadcasts", broadcasts},
    {"Gathers", gathers},
    {"CollectivesInARow", collectives_in_a_row},
    {"Letters", letters},
    {"SizesThatDifferAreAnError", sizes_that_differ_are_an_error},
};

}  // namespace

std::span<const TransportCheck> transport_checks() { return checks; }

}  // namespace antichain::test
