#include "pipeline/transport/mpi_transport.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <map>
#include <thread>
#include <utility>

#include "framework/say.h"
#include "pipeline/host/launch.h"
#include "pipeline/transport/mpi_check.h"
#include "pipeline/transport/mpi_heartbeat.h"

namespace antichain {
namespace {

constexpr int microbatches_per_channel = 4096;  // leaves 2048 channels where tags have 23 bits (UCX)

// How many cores the ranks of one host may use between them, as they were bound.
int cores_of(MPI_Comm host) {
  cpu_set_t mine, all;
  CPU_ZERO(&mine);
  ::sched_getaffinity(0, sizeof mine, &mine);
  ANTICHAIN_MPI(MPI_Allreduce(&mine, &all, sizeof mine, MPI_BYTE, MPI_BOR, host));
  return CPU_COUNT(&all);
}

class MpiTransport : public JobTransport {
 public:
  MpiTransport() : rank_(tensors_.rank()), size_(tensors_.size()) {
    MPI_Comm host;
    ANTICHAIN_MPI(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &host));
    ANTICHAIN_MPI(MPI_Comm_rank(host, &local_rank_));
    ANTICHAIN_MPI(MPI_Comm_size(host, &local_size_));
    crowded_ = local_size_ > cores_of(host);
    ANTICHAIN_MPI(MPI_Comm_free(&host));
    int* upper_bound = nullptr;
    int found = 0;
    ANTICHAIN_MPI(MPI_Comm_get_attr(tensors_, MPI_TAG_UB, &upper_bound, &found));
    if (found) largest_tag_ = *upper_bound;
    synchronous_ = std::getenv("ANTICHAIN_SYNCHRONOUS_SENDS") != nullptr;
  }

  // MPI may still read letters that nobody has taken: an answer of rank 0 in a run that stops.
  ~MpiTransport() override {
    for (int tries = 0; tries < 1000 && !letters_out_.empty(); ++tries) {
      try {
        advance();
      } catch (const Error&) {
        break;
      }
      ::usleep(100);
    }
    static std::list<Letter> untaken;  // until after MPI_Finalize
    untaken.splice(untaken.end(), letters_out_);
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
    sends_.push_back({request, std::move(tensor), key, peer});
  }

  Ticket recv(MessageKey key, int peer, Tensor into) override {
    MPI_Request request;
    ANTICHAIN_MPI(MPI_Irecv(into.raw(), count(into), MPI_BYTE, peer, tag(key), tensors_, &request));
    receives_[++last_ticket_] = {{request, std::move(into), key, peer}};
    return last_ticket_;
  }

  void wait(Ticket ticket) override {
    const auto it = receives_.find(ticket);
    ANTICHAIN_CHECK(it != receives_.end(), "a receive is posted once and waited for once");
    PostedReceive& posted = it->second;
    poll(
        posted.peer,
        [&] { return fmt::format("{} from rank {}", name_of(posted.key, posted.peer, rank_), posted.peer); },
        [&] { return received(posted); });
    const PostedReceive done = std::move(posted);
    receives_.erase(it);
    int bytes = 0;
    ANTICHAIN_MPI(MPI_Get_count(&done.status, MPI_BYTE, &bytes));
    if (!done.fits || bytes != done.tensor.bytes())
      throw wrong_size(done.key, done.peer, done.tensor.bytes(), bytes);
  }

  bool arrived(Ticket ticket) override {
    const auto it = receives_.find(ticket);
    return it != receives_.end() && received(it->second);
  }

  void progress() override {
    advance();
    activity().beat();
  }

  void flush() override {
    poll(
        RankState::anybody, [] { return std::string("delivery of its own sends"); },
        [&] { return sends_.empty(); });
  }

  void barrier() override {
    MPI_Request request;
    ANTICHAIN_MPI(MPI_Ibarrier(control_, &request));
    finish(request, "barrier that the other ranks have not reached");
  }

  std::string broadcast(std::string bytes, int root) override {
    int64_t length = int64_t(bytes.size());
    MPI_Request request;
    ANTICHAIN_MPI(MPI_Ibcast(&length, 1, MPI_INT64_T, root, control_, &request));
    finish(request, "broadcast of a rank that has not come to it");
    bytes.resize(size_t(length));
    ANTICHAIN_MPI(MPI_Ibcast(bytes.data(), count(length), MPI_BYTE, root, control_, &request));
    finish(request, "broadcast of a rank that has not come to it");
    return bytes;
  }

  std::vector<std::string> gather(const std::string& bytes) override {
    const int length = count(int64_t(bytes.size()));
    std::vector<int> lengths(static_cast<size_t>(size_)), offsets(static_cast<size_t>(size_));
    MPI_Request request;
    ANTICHAIN_MPI(MPI_Igather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, 0, control_, &request));
    finish(request, "gathering of results on rank 0");
    int64_t total = 0;
    for (size_t r = 0; r < lengths.size(); ++r) offsets[r] = count(std::exchange(total, total + lengths[r]));
    std::string all(size_t(count(total)), '\0');
    ANTICHAIN_MPI(MPI_Igatherv(bytes.data(), length, MPI_BYTE, all.data(), lengths.data(), offsets.data(),
                               MPI_BYTE, 0, control_, &request));
    finish(request, "gathering of results on rank 0");
    std::vector<std::string> texts;
    if (rank_ == 0)
      for (size_t r = 0; r < lengths.size(); ++r)
        texts.push_back(all.substr(size_t(offsets[r]), size_t(lengths[r])));
    return texts;
  }

  // A letter is two messages, its length and its text.
  void post(int to, std::string text) override {
    Letter& letter = letters_out_.emplace_back();
    letter.text = std::move(text);
    letter.length = int64_t(letter.text.size());
    ANTICHAIN_MPI(MPI_Isend(&letter.length, 1, MPI_INT64_T, to, 0, letters_, &letter.requests[0]));
    ANTICHAIN_MPI(
        MPI_Isend(letter.text.data(), count(letter.length), MPI_BYTE, to, 1, letters_, &letter.requests[1]));
  }

  std::string take(int from) override {
    const auto what = [&] { return fmt::format("letter from rank {}", from); };
    int64_t length = 0;
    MPI_Request request;
    ANTICHAIN_MPI(MPI_Irecv(&length, 1, MPI_INT64_T, from, 0, letters_, &request));
    poll(from, what, [&] { return test(request, MPI_STATUS_IGNORE); });
    std::string text(size_t(length), '\0');
    ANTICHAIN_MPI(MPI_Irecv(text.data(), count(length), MPI_BYTE, from, 1, letters_, &request));
    poll(from, what, [&] { return test(request, MPI_STATUS_IGNORE); });
    return text;
  }

 private:
  struct Letter {
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int64_t length = 0;
    std::string text;  // MPI reads both until they are delivered
    bool delivered() { return test(requests[0], MPI_STATUS_IGNORE) && test(requests[1], MPI_STATUS_IGNORE); }
  };
  struct PostedMessage {
    MPI_Request request;
    Tensor tensor;  // kept until delivered
    MessageKey key;
    int peer;
  };
  struct PostedReceive : PostedMessage {
    MPI_Status status{};
    bool done = false, fits = true;
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

  // A message too large for its receive ends it as an error.
  static bool received(PostedReceive& posted) {
    if (posted.done) return true;  // and its request is none any more
    int done = 0, kind = MPI_SUCCESS;
    const int code = MPI_Test(&posted.request, &done, &posted.status);
    if (code != MPI_SUCCESS) MPI_Error_class(code, &kind);
    posted.fits = kind != MPI_ERR_TRUNCATE;
    if (posted.fits) ANTICHAIN_MPI(code);
    return posted.done = done != 0 || !posted.fits;
  }

  void finish(MPI_Request& request, const char* what) {
    poll(
        RankState::anybody, [&] { return std::string(what); },
        [&] { return test(request, MPI_STATUS_IGNORE); });
  }

  void advance() {
    std::erase_if(sends_, [&](PostedMessage& send) { return test(send.request, MPI_STATUS_IGNORE); });
    std::erase_if(letters_out_, [](Letter& letter) { return letter.delivered(); });
    // With nothing to send, MPI still has to be entered for receives to move.
    int flag = 0;
    if (sends_.empty() && !receives_.empty())
      ANTICHAIN_MPI(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, tensors_, &flag, MPI_STATUS_IGNORE));
  }

  // Spins where every rank has its core; where ranks share cores it steps aside soon, or nobody gets
  // anywhere. What it waits for is put into words only when the wait has lasted.
  template <class Text, class Condition>
  void poll(int peer, const Text& what, const Condition& done) {
    using Clock = std::chrono::steady_clock;
    Progress::Wait waiting(activity(), peer);
    const auto start = Clock::now();
    bool explained = false;
    for (int round = 0; !done(); ++round) {
      advance();
      if (!explained && round % 64 == 63 && Clock::now() - start > std::chrono::milliseconds(20)) {
        waiting.explain(what());
        explained = true;
      }
      if (!crowded_ || round < 20) continue;
      if (round < 200)
        ::sched_yield();
      else
        ::usleep(50);
    }
  }

  Communicator tensors_, control_, letters_;
  const int rank_, size_;
  int local_rank_ = 0, local_size_ = 1;
  int64_t largest_tag_ = 32'767;  // what the MPI standard guarantees
  bool synchronous_ = false, crowded_ = false;
  std::vector<PostedMessage> sends_;
  std::list<Letter> letters_out_;  // these stay where they are
  std::map<Ticket, PostedReceive> receives_;
  Ticket last_ticket_ = 0;
};

// One rank says at once why the job ends and takes the others down before they repeat it; they stand in for
// it, should it be stopped right now, or silent because only they failed. Nothing is left to save, so the
// launcher's SIGTERM, which comes a second before its SIGKILL, may end them.
void stand_by(int rank) {
  std::signal(SIGTERM, SIG_DFL);
  std::this_thread::sleep_for(std::chrono::milliseconds(1000 + 100 * std::min(rank, 10)));
}

// No watchdog of another rank is there yet, and nobody knows who is missing.
[[noreturn]] void end_beginning(double limit_s) {
  if (rank_hint() > 0) stand_by(rank_hint());
  say_last(fmt::format(
      "MPI has not begun for {:g} s: another process of this job was not started, is stopped, or runs "
      "another command, which begins no MPI",
      limit_s));
  std::_Exit(int(ExitCode::watchdog));
}

// Between hosts that have nothing faster, Open MPI uses TCP. Left alone it moves a message only within calls
// of MPI, so its own thread is asked for. It would also send a large message as a whole, and the messages of
// the other direction would wait for permission behind it: two replicas that exchange gradients would take
// turns on the link. In fragments they do not. What the user has set stays.
void settle_tcp() {
  ::setenv("OMPI_MCA_btl_tcp_progress_thread", "1", /*overwrite=*/0);
  ::setenv("OMPI_MCA_btl_tcp_flags", "send,inplace", /*overwrite=*/0);
}

}  // namespace

MpiSession::MpiSession(double watchdog_s) {
  int level = MPI_THREAD_SINGLE;
  if (launched_on_several_hosts()) settle_tcp();
  {
    Progress beginning;
    beginning.limit(watchdog_s);
    const Watchdog watchdog(states_of_threads({&beginning}),
                            [watchdog_s](const Verdict&) { end_beginning(watchdog_s); });
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level);
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (level < MPI_THREAD_MULTIPLE)
    throw Error("this MPI has no MPI_THREAD_MULTIPLE, which the watchdog needs",
                "use an MPI built with thread support");
  transport_ = std::make_unique<MpiTransport>();
  transport_->activity().limit(watchdog_s);
  const auto end_stuck = [rank = transport_->rank()](const Verdict& verdict) {
    if (rank != verdict.speaker) stand_by(rank);
    say_last(verdict.message);
    MPI_Abort(MPI_COMM_WORLD, int(ExitCode::watchdog));
  };
  watchdog_ = std::make_unique<Watchdog>(std::make_unique<MpiHeartbeat>(transport_->activity()), end_stuck);
}

MpiSession::~MpiSession() { close(); }

void MpiSession::close() {
  transport_->activity().finish();
  watchdog_.reset();
  transport_.reset();
  MPI_Finalize();
}

void MpiSession::end_job(const std::string& sentence, int code) {
  // Often all ranks fail alike, and rank 0 speaks for them. Ranks that did not find each other all think they
  // are the only one.
  const int rank = transport_->size() == 1 ? rank_hint() : transport_->rank();
  if (rank > 0) stand_by(rank);
  std::fflush(nullptr);
  if (rank == 0 || transport_->size() > 1) say_last(sentence);
  if (transport_->size() > 1) MPI_Abort(MPI_COMM_WORLD, code);
  std::_Exit(code);
}

void MpiSession::end_together(const std::string& sentence, int code) {
  std::fflush(nullptr);
  if (transport_->rank() == 0) say_last(sentence);
  close();
  // The first rank that leaves with a code makes some launchers end the others, whose code would count then.
  std::signal(SIGTERM, SIG_IGN);
  std::_Exit(code);
}

std::string mpi_library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);  // may be called before MPI is up
  std::string line(text);
  line.resize(std::min(line.size(), line.find_first_of("\n,")));
  // Open MPI begins with "Open MPI v4.1.4, package", and MPICH with "MPICH Version:" and a tab.
  constexpr std::string_view word = " Version:";
  const size_t at = line.find(word);
  if (at == std::string::npos) return line;
  return line.replace(at, line.find_first_not_of(" \t", at + word.size()) - at, " ");
}

}  // namespace antichain
