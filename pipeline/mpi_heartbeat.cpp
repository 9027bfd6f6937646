#include "pipeline/mpi_heartbeat.h"

#include <algorithm>
#include <array>

#include "pipeline/seconds.h"

namespace antichain {

MpiHeartbeat::MpiHeartbeat(const Progress& mine) : mine_(mine), known_(size_t(comm_.size())) {
  std::array<char, MPI_MAX_PROCESSOR_NAME> name{};
  int length = 0;
  ANTICHAIN_MPI(MPI_Get_processor_name(name.data(), &length));
  std::vector<char> names(name.size() * known_.size());
  ANTICHAIN_MPI(MPI_Allgather(name.data(), int(name.size()), MPI_CHAR, names.data(), int(name.size()),
                              MPI_CHAR, comm_));
  for (size_t r = 0; r < known_.size(); ++r) {
    known_[r].host = &names[r * name.size()];
    known_[r].heard = Clock::now();
  }
}

double MpiHeartbeat::unheard_s(int rank) const { return seconds_since(known_[size_t(rank)].heard); }

void MpiHeartbeat::refresh() {
  Known& me = known_[size_t(comm_.rank())];
  mine_.examine();
  me.state = mine_.read();
  me.heard = Clock::now();
  forget_delivered();
  // A rank that is stopped takes nothing in: don't pile messages up for it.
  const bool due = seconds_since(told_) >= 5e-3;
  if (due && !said_last_ && posted_.size() < 16 * known_.size()) tell(false);
  take_in();
}

bool MpiHeartbeat::leave() {
  if (!said_last_) tell(said_last_ = true);
  known_[size_t(comm_.rank())].gone = true;
  take_in();
  forget_delivered();
  return posted_.empty() && std::ranges::all_of(known_, &Known::gone);
}

void MpiHeartbeat::tell(bool last) {
  told_ = Clock::now();
  const auto beat = std::make_shared<const Beat>(Beat{mine_.read(), last});
  for (int r = 0; r < comm_.size(); ++r) {
    if (r == comm_.rank()) continue;
    Posted& posted = posted_.emplace_back();
    posted.beat = beat;
    ANTICHAIN_MPI(MPI_Isend(beat.get(), sizeof(Beat), MPI_BYTE, r, 0, comm_, &posted.request));
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
  std::erase_if(posted_, [](Posted& posted) {
    int done = 0;
    ANTICHAIN_MPI(MPI_Test(&posted.request, &done, MPI_STATUS_IGNORE));
    return done != 0;
  });
}

}  // namespace antichain
