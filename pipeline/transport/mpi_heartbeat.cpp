#include "pipeline/transport/mpi_heartbeat.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "pipeline/host/seconds.h"

namespace antichain {
namespace {

// Process numbers mean the same where /proc/self/ns/pid is the same file.
uint64_t numbering_of_processes() {
  struct stat file {};
  return ::stat("/proc/self/ns/pid", &file) == 0 ? uint64_t(file.st_ino) : 0;
}

struct HostProcess {
  std::array<char, MPI_MAX_PROCESSOR_NAME> host{};
  uint64_t numbering = numbering_of_processes();
  pid_t process = ::getpid();
};

}  // namespace

MpiHeartbeat::MpiHeartbeat(const Progress& mine) : mine_(mine), known_(size_t(comm_.size())) { meet(); }

// Every rank learns where the others are, and which of them it can look at.
void MpiHeartbeat::meet() {
  HostProcess mine;
  int length = 0;
  ANTICHAIN_MPI(MPI_Get_processor_name(mine.host.data(), &length));
  std::vector<HostProcess> places(known_.size());
  ANTICHAIN_MPI(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, places.data(), sizeof mine, MPI_BYTE, comm_));
  for (size_t r = 0; r < known_.size(); ++r) {
    known_[r].host = places[r].host.data();
    known_[r].heard = Clock::now();
    if (known_[r].host == mine.host.data() && places[r].numbering == mine.numbering && mine.numbering != 0)
      known_[r].process = places[r].process;
  }
}

void MpiHeartbeat::refresh() {
  look();
  forget_delivered();
  // A rank that is stopped takes nothing in: don't pile messages up for it.
  const bool due = seconds_since(told_) >= 5e-3;
  if (due && !said_last_ && sent_.size() < 16 * known_.size()) tell(false);
  take_in();
  for (Known& known : known_) listen(known);
}

void MpiHeartbeat::look() {
  Known& me = known_[size_t(comm_.rank())];
  me.state = mine_.look(now_s());
  me.heard = Clock::now();
}

// A rank whose watchdog has no core says nothing, either, and so not that its rank has none.
void MpiHeartbeat::listen(Known& known) {
  known.unheard_s = seconds_since(known.heard);
  if (known.process == 0 || known.unheard_s < std::min(known.state.limit_s / 10, 0.5))
    return known.starved.reset();
  if (known.starved)
    known.starved->look();
  else
    known.starved.emplace(known.process);
  known.unheard_s -= std::min(known.starved->seconds(), known.unheard_s);
}

RankState MpiHeartbeat::state(int rank) const {
  const Known& known = known_[size_t(rank)];
  RankState state = known.state;
  if (known.starved) state.starved_s += known.starved->seconds();
  return state;
}

bool MpiHeartbeat::leave() {
  if (!said_last_) {
    look();
    tell(said_last_ = true);
  }
  known_[size_t(comm_.rank())].gone = true;
  take_in();
  forget_delivered();
  return sent_.empty() && std::ranges::all_of(known_, &Known::gone);
}

void MpiHeartbeat::tell(bool last) {
  told_ = Clock::now();
  const auto beat = std::make_shared<const Beat>(Beat{known_[size_t(comm_.rank())].state, last});
  for (int r = 0; r < comm_.size(); ++r) {
    if (r == comm_.rank()) continue;
    SentBeat& sent = sent_.emplace_back();
    sent.beat = beat;
    ANTICHAIN_MPI(MPI_Isend(beat.get(), sizeof(Beat), MPI_BYTE, r, 0, comm_, &sent.request));
  }
}

void MpiHeartbeat::take_in() {
  for (;;) {
    int there = 0;
    MPI_Status status;
    ANTICHAIN_MPI(MPI_Iprobe(MPI_ANY_SOURCE, 0, comm_, &there, &status));
    if (!there) return;
    Beat beat;
    ANTICHAIN_MPI(MPI_Recv(&beat, sizeof beat, MPI_BYTE, status.MPI_SOURCE, 0, comm_, MPI_STATUS_IGNORE));
    Known& known = known_[size_t(status.MPI_SOURCE)];
    known.state = beat.state;
    known.heard = Clock::now();
    known.gone = beat.last != 0;
  }
}

void MpiHeartbeat::forget_delivered() {
  std::erase_if(sent_, [](SentBeat& sent) {
    int done = 0;
    ANTICHAIN_MPI(MPI_Test(&sent.request, &done, MPI_STATUS_IGNORE));
    return done != 0;
  });
}

}  // namespace antichain
