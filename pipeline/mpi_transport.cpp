#include "pipeline/mpi_transport.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <thread>
#include <utility>

#include "pipeline/launch.h"
#include "pipeline/mpi_check.h"

namespace antichain {
namespace {

constexpr int microbatches_per_channel = 65'536;

// A duplicate of the world: messages of one do not meet those of another, and errors come back as codes.
class Communicator {
 public:
  Communicator() {
    ANTICHAIN_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm_));
    ANTICHAIN_MPI(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN));
  }
  ~Communicator() {
    if (std::uncaught_exceptions() == 0) MPI_Comm_free(&comm_);
  }
  Communicator(const Communicator&) = delete;
  operator MPI_Comm() const { return comm_; }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

int rank_in(MPI_Comm comm) {
  int rank = 0;
  ANTICHAIN_MPI(MPI_Comm_rank(comm, &rank));
  return rank;
}

int size_of_comm(MPI_Comm comm) {
  int size = 1;
  ANTICHAIN_MPI(MPI_Comm_size(comm, &size));
  return size;
}

class MpiTransport : public Transport {
 public:
  MpiTransport() : rank_(rank_in(MPI_COMM_WORLD)), size_(size_of_comm(MPI_COMM_WORLD)) {
    MPI_Comm host;
    ANTICHAIN_MPI(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &host));
    local_rank_ = rank_in(host);
    local_size_ = size_of_comm(host);
    ANTICHAIN_MPI(MPI_Comm_free(&host));
    int* upper_bound = nullptr;
    int found = 0;
    ANTICHAIN_MPI(MPI_Comm_get_attr(tensors_, MPI_TAG_UB, &upper_bound, &found));
    if (found) largest_tag_ = *upper_bound;
    synchronous_ = std::getenv("ANTICHAIN_SYNCHRONOUS_SENDS") != nullptr;
    crowded_ = local_size_ > available_cores_on_host();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int local_rank() const override { return local_rank_; }
  int local_size() const override { return local_size_; }
  std::string host() const override {
    char name[MPI_MAX_PROCESSOR_NAME] = "";
    int length = 0;
    MPI_Get_processor_name(name, &length);
    return name;
  }

  void send(MessageKey key, int peer, Tensor tensor) override {
    MPI_Request request;
    const auto post = synchronous_ ? MPI_Issend : MPI_Isend;
    ANTICHAIN_MPI(post(tensor.raw(), count(tensor), MPI_BYTE, peer, tag(key), tensors_, &request));
    sends_.push_back({request, std::move(tensor)});
  }

  Ticket recv(MessageKey key, int peer, Tensor into) override {
    MPI_Request request;
    ANTICHAIN_MPI(MPI_Irecv(into.raw(), count(into), MPI_BYTE, peer, tag(key), tensors_, &request));
    receives_[++last_ticket_] = {request, std::move(into)};
    return last_ticket_;
  }

  void wait(Ticket ticket) override {
    const auto it = receives_.find(ticket);
    ANTICHAIN_CHECK(it != receives_.end(), "a receive is posted once and waited for once");
    MPI_Status status;
    poll([&] { return test(it->second.request, &status); });
    int bytes = 0;
    ANTICHAIN_MPI(MPI_Get_count(&status, MPI_BYTE, &bytes));
    ANTICHAIN_CHECK(bytes == it->second.tensor.bytes(), "sender and receiver agree on a message's size");
    receives_.erase(it);
  }

  void progress() override {
    std::erase_if(sends_, [&](Posted& send) { return test(send.request, MPI_STATUS_IGNORE); });
    // With nothing to send, MPI still has to be entered for receives to move.
    if (sends_.empty() && !receives_.empty()) {
      int flag = 0;
      ANTICHAIN_MPI(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, tensors_, &flag, MPI_STATUS_IGNORE));
    }
  }

  void flush() override {
    poll([&] { return sends_.empty(); });
  }

  void barrier() override {
    MPI_Request request;
    ANTICHAIN_MPI(MPI_Ibarrier(control_, &request));
    finish(request);
  }

  std::string broadcast(std::string bytes, int root) override {
    int64_t length = int64_t(bytes.size());
    MPI_Request request;
    ANTICHAIN_MPI(MPI_Ibcast(&length, 1, MPI_INT64_T, root, control_, &request));
    finish(request);
    bytes.resize(size_t(length));
    ANTICHAIN_MPI(MPI_Ibcast(bytes.data(), count(length), MPI_BYTE, root, control_, &request));
    finish(request);
    return bytes;
  }

  std::vector<std::string> gather(const std::string& bytes) override {
    const int length = count(int64_t(bytes.size()));
    std::vector<int> lengths(static_cast<size_t>(size_)), offsets(static_cast<size_t>(size_));
    MPI_Request request;
    ANTICHAIN_MPI(MPI_Igather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, 0, control_, &request));
    finish(request);
    int64_t total = 0;
    for (size_t r = 0; r < lengths.size(); ++r) offsets[r] = count(std::exchange(total, total + lengths[r]));
    std::string all(size_t(count(total)), '\0');
    ANTICHAIN_MPI(MPI_Igatherv(bytes.data(), length, MPI_BYTE, all.data(), lengths.data(), offsets.data(),
                               MPI_BYTE, 0, control_, &request));
    finish(request);
    std::vector<std::string> texts;
    if (rank_ == 0)
      for (size_t r = 0; r < lengths.size(); ++r)
        texts.push_back(all.substr(size_t(offsets[r]), size_t(lengths[r])));
    return texts;
  }

  void abort(int code) override { MPI_Abort(MPI_COMM_WORLD, code); }

 private:
  struct Posted {
    MPI_Request request;
    Tensor tensor;  // kept until delivered
  };

  static int count(int64_t bytes) {
    if (bytes > INT_MAX)
      throw Error(
          fmt::format("a message of {:.1f} GiB is more than MPI sends at once", double(bytes) / (1 << 30)),
          "use more --microbatches");
    return int(bytes);
  }
  static int count(const Tensor& tensor) { return count(tensor.bytes()); }

  int tag(MessageKey key) const {
    const int64_t tag = int64_t(key.channel) * microbatches_per_channel + key.microbatch;
    if (key.microbatch >= microbatches_per_channel || tag > largest_tag_)
      throw Error(
          fmt::format("this MPI's message tags end at {}, and tensor {} of micro-batch {} would need {}",
                      largest_tag_, key.channel, key.microbatch, tag),
          "use fewer stages or micro-batches");
    return int(tag);
  }

  static bool test(MPI_Request& request, MPI_Status* status) {
    int done = 0;
    ANTICHAIN_MPI(MPI_Test(&request, &done, status));
    return done != 0;
  }

  void finish(MPI_Request& request) {
    poll([&] { return test(request, MPI_STATUS_IGNORE); });
  }

  // Spins where every rank has its core; where ranks share cores it steps aside soon, or nobody gets anywhere.
  template <class Condition>
  void poll(Condition done) {
    for (int round = 0; !done(); ++round) {
      progress();
      if (!crowded_ || round < 20) continue;
      if (round < 200)
        ::sched_yield();
      else
        ::usleep(50);
    }
  }

  const int rank_, size_;
  int local_rank_ = 0, local_size_ = 1;
  int64_t largest_tag_ = 32'767;  // what the MPI standard guarantees
  bool synchronous_ = false, crowded_ = false;
  Communicator tensors_, control_;
  std::vector<Posted> sends_;
  std::map<Ticket, Posted> receives_;
  Ticket last_ticket_ = 0;
};

// Heartbeats: every look sends this rank's status to all others and takes in what has come.
class MpiBoard : public StatusBoard {
 public:
  explicit MpiBoard(const Progress& mine)
      : mine_(mine),
        rank_(rank_in(comm_)),
        heard_(size_t(size_of_comm(comm_)), Clock::now()),
        known_(heard_.size()),
        sent_(heard_.size()),
        received_(heard_.size()) {}

  // Every message sent is received before the communicator goes.
  ~MpiBoard() override {
    if (std::uncaught_exceptions() > 0) return;
    std::vector<int> due(sent_.size());
    MPI_Alltoall(sent_.data(), 1, MPI_INT, due.data(), 1, MPI_INT, comm_);
    while (received_ != due) take_in();
    for (Beat& beat : beats_) MPI_Wait(&beat.request, MPI_STATUS_IGNORE);
  }

  std::vector<RankStatus> look() override {
    known_[size_t(rank_)] = mine_.snapshot();
    heard_[size_t(rank_)] = Clock::now();
    std::erase_if(beats_, [](Beat& beat) {
      int done = 0;
      ANTICHAIN_MPI(MPI_Test(&beat.request, &done, MPI_STATUS_IGNORE));
      return done != 0;
    });
    // A stopped rank takes nothing in: don't pile messages up for it.
    if (beats_.size() < 8 * known_.size()) tell();
    take_in();
    std::vector<RankStatus> all;
    for (size_t r = 0; r < known_.size(); ++r)
      all.push_back({known_[r], std::chrono::duration<double>(Clock::now() - heard_[r]).count()});
    return all;
  }

  // The lowest rank that is alive.
  bool speaks() const override {
    for (int r = 0; r < rank_; ++r)
      if (std::chrono::duration<double>(Clock::now() - heard_[size_t(r)]).count() < 2) return false;
    return true;
  }

  void end_job(int code) override { MPI_Abort(MPI_COMM_WORLD, code); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Wire {
    uint64_t count;
    int32_t waiting;
    char activity[228];
  };
  struct Beat {
    MPI_Request request = MPI_REQUEST_NULL;
    std::shared_ptr<Wire> wire;
  };

  void tell() {
    const Progress::Snapshot& s = known_[size_t(rank_)];
    auto wire = std::make_shared<Wire>(Wire{s.count, s.waiting, {}});
    s.activity.copy(wire->activity, sizeof wire->activity - 1);
    for (int r = 0; r < int(known_.size()); ++r) {
      if (r == rank_) continue;
      Beat& beat = beats_.emplace_back();
      beat.wire = wire;
      ANTICHAIN_MPI(MPI_Isend(wire.get(), sizeof(Wire), MPI_BYTE, r, 0, comm_, &beat.request));
      ++sent_[size_t(r)];
    }
  }

  void take_in() {
    for (int there = 1; there;) {
      MPI_Status status;
      ANTICHAIN_MPI(MPI_Iprobe(MPI_ANY_SOURCE, 0, comm_, &there, &status));
      if (!there) return;
      Wire wire;
      ANTICHAIN_MPI(MPI_Recv(&wire, sizeof wire, MPI_BYTE, status.MPI_SOURCE, 0, comm_, MPI_STATUS_IGNORE));
      const auto r = size_t(status.MPI_SOURCE);
      known_[r] = {wire.count, wire.waiting != 0, wire.activity};
      heard_[r] = Clock::now();
      ++received_[r];
    }
  }

  Communicator comm_;
  const Progress& mine_;
  const int rank_;
  std::vector<Clock::time_point> heard_;
  std::vector<Progress::Snapshot> known_;
  std::vector<int> sent_, received_;
  std::vector<Beat> beats_;
};

}  // namespace

MpiSession::MpiSession() {
  int level = MPI_THREAD_SINGLE;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (level < MPI_THREAD_MULTIPLE)
    throw Error("this MPI has no MPI_THREAD_MULTIPLE, which the watchdog needs",
                "use an MPI built with thread support");
  transport_ = std::make_unique<MpiTransport>();
  check_launch(transport_->size());
}

MpiSession::~MpiSession() {
  if (std::uncaught_exceptions() > 0) return;  // a collective finalize would wait for ranks that are gone
  transport_.reset();
  MPI_Finalize();
}

std::unique_ptr<StatusBoard> MpiSession::make_board(const Progress& progress) {
  return std::make_unique<MpiBoard>(progress);
}

void MpiSession::end_job(const std::string& sentence, int code) {
  // Often all ranks fail alike. Rank 0 speaks at once and takes the others down before they repeat it; a rank that
  // fails alone speaks after a moment.
  const int rank = transport_ ? transport_->rank() : 0;
  if (rank > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1000 + 100 * std::min(rank, 10)));
  std::fprintf(stderr, "antichain: %s\n", sentence.c_str());
  std::fflush(nullptr);
  MPI_Abort(MPI_COMM_WORLD, code);
  std::_Exit(code);
}

}  // namespace antichain
