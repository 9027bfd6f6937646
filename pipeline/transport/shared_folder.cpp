#include "pipeline/transport/shared_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <vector>

#include "framework/error.h"
#include "framework/files/checkpoint_folder.h"
#include "framework/paths.h"
#include "pipeline/host/seconds.h"
#include "pipeline/transport/agree.h"

namespace antichain {
namespace {

std::string word_of_this_job(Job& job) {
  std::random_device random;
  return on_rank_zero(job, [&] { return fmt::format("{:08x}{:08x}", random(), random()); });
}

// A rank's file, removed when the scope ends.
class Token {
 public:
  Token(const std::string& folder, const std::string& word, int rank) : path_(path(folder, word, rank)) {
    const int file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (file < 0 || ::close(file) != 0) problem_ = std::strerror(errno);
  }
  ~Token() { ::unlink(path_.c_str()); }
  Token(const Token&) = delete;
  const std::string& problem() const { return problem_; }  // why it could not be written, or ""
  static std::string path(const std::string& folder, const std::string& word, int rank) {
    return fmt::format("{}/{}{}-{}", folder, CheckpointFolder::token_prefix, word, rank);
  }

 private:
  std::string path_, problem_;
};

// Listing the folder makes a client of a file server ask for its present state.
bool sees(const std::string& folder, const std::string& file, double patience_s) {
  for (const double start_s = now_s();; ::usleep(50'000)) {
    if (::access(file.c_str(), F_OK) == 0) return true;
    if (now_s() - start_s >= patience_s) return false;
    look_again(folder);
  }
}

// Collective. The first rank's problem ends the job.
void end_at_first(Job& job, const std::string& problem, const std::string& hint) {
  const auto all = job.gather(problem);
  const auto first = std::ranges::find_if(all, [](const std::string& p) { return !p.empty(); });
  const std::string sentence = job.broadcast(first == all.end() ? "" : *first);
  if (!sentence.empty()) throw Error(sentence, hint);
}

}  // namespace

void check_shared_folder(const std::string& folder, Job& job, double patience_s) {
  if (job.size() == 1) return;
  constexpr const char* hint = "name a folder for checkpoints on a file system that all hosts share";
  const Progress::Disk disk(job.activity(), "writing to the folder for checkpoints");
  const int rank = job.rank();
  const std::string word = word_of_this_job(job);
  const auto place = [&](int r, const std::string& host) {
    return host.empty() ? fmt::format("rank {}", r) : fmt::format("rank {} on {}", r, host);
  };
  std::vector<std::string> hosts = job.gather(job.host());
  const std::string me = place(rank, job.host()),
                    first = place(0, job.broadcast(hosts.empty() ? "" : hosts[0]));
  const Token mine(folder, word, rank);
  end_at_first(job,
               mine.problem().empty()
                   ? ""
                   : fmt::format("{} can't write to the folder {}: {}", me, folder, mine.problem()),
               hint);
  const auto other_folder = [&](const std::string& one, const std::string& other) {
    return fmt::format("{} does not see what {} writes to {}: it is another folder there", one, other,
                       folder);
  };
  const bool seen = sees(folder, Token::path(folder, word, 0), patience_s);
  end_at_first(job, seen ? "" : other_folder(me, first), hint);
  std::string missed;
  for (int r = 1; rank == 0 && r < job.size() && missed.empty(); ++r)
    if (!sees(folder, Token::path(folder, word, r), patience_s))
      missed = other_folder(first, place(r, hosts[size_t(r)]));
  end_at_first(job, missed, hint);
}

}  // namespace antichain
