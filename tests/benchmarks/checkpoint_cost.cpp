// This measures how long a checkpoint of one rank takes, from the stage's tensors to a complete folder,
// relative to a plain write and fsync of the same bytes on the same disk. The two take turns, so that other
// work on the machine slows both.
//
//   checkpoint_cost FOLDER [--model resnet18] [--turns 15] [--at-most 1.5]
//
// It fails when the ratio of the fastest of each is more than --at-most says.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "framework/error.h"
#include "framework/files/checkpoint_folder.h"
#include "framework/json.h"
#include "layers/cpu/backend.h"
#include "models/model.h"
#include "pipeline/stage/stage_state.h"

namespace antichain {
namespace {

using Clock = std::chrono::steady_clock;

// Whatever else the machine does only adds to a time.
double fastest(const std::vector<double>& values) { return *std::ranges::min_element(values); }

// Parts has the times of each part, by name in the order of the work.
class Parts {
 public:
  void begin() { start_ = Clock::now(); }
  void end(const std::string& name) {
    const auto now = Clock::now();
    seconds_[name].push_back(std::chrono::duration<double>(now - start_).count());
    if (std::ranges::find(names_, name) == names_.end()) names_.push_back(name);
    start_ = now;
  }
  double of(const std::string& name) const { return fastest(seconds_.at(name)); }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::map<std::string, std::vector<double>> seconds_;
  std::vector<std::string> names_;
  Clock::time_point start_;
};

void write_plainly(const std::string& path, const std::string& bytes) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0644);
  size_t at = 0;
  for (ssize_t n = 1; at < bytes.size() && n > 0; at += size_t(n))
    n = ::write(file, bytes.data() + at, bytes.size() - at);
  if (at != bytes.size() || ::fsync(file) != 0 || ::close(file) != 0) throw Error("can't write " + path, "");
}

int run(const std::string& place, const std::string& model, int turns, double at_most) {
  register_cpu_backend();
  Context context(backend("cpu"));
  backend("cpu").enter(context);
  const Graph graph = lower(make_model(model, {.microbatch = 2}), backend("cpu"));
  std::vector<NodeId> nodes;
  for (NodeId id = 0; id < graph.size(); ++id)
    if (graph[id].role() != Role::input) nodes.push_back(id);
  RankModel rank_model(graph, nodes, context, 0);
  const CheckpointFolder folder(place + "/checkpoints");
  std::filesystem::remove_all(folder.path());
  std::filesystem::create_directories(folder.path());
  const std::string raw = place + "/raw";
  std::filesystem::remove(raw);
  StateCopy copy;
  Parts parts;
  std::vector<double> whole;
  std::string bytes;
  for (int turn = 1; turn <= turns; ++turn) {
    const auto start = Clock::now();
    parts.begin();
    copy.take(rank_model, false);
    parts.end("copy");
    folder.begin(turn);
    SyncedFile file(folder.partial_of(turn) + "/" + checkpoint_file_name(0), [] {});
    copy.write_hdf5(context, [&](std::string_view piece) { file.write(piece); });
    parts.end("layout, hash, write");
    file.finish();
    parts.end("sync");
    folder.publish({.program = "0",
                    .position = {.step = turn},
                    .files = {{checkpoint_file_name(0), file.bytes(), file.hash(), copy.tensors()}}});
    parts.end("manifest and names");
    whole.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    if (bytes.empty()) bytes = read_file(folder.of_step(turn) + "/" + checkpoint_file_name(0));
    parts.begin();
    write_plainly(raw, bytes);
    parts.end("raw write and sync");
    folder.prune(turn, 1);
    parts.end("removal of the older");
    std::filesystem::remove(raw);
  }
  const double raw_s = parts.of("raw write and sync"), ratio = fastest(whole) / raw_s;
  fmt::print("{}: {:.1f} MB, the fastest of {} turns\n", model, double(bytes.size()) / 1e6, turns);
  for (const std::string& name : parts.names())
    fmt::print("  {:<26}{:8.1f} ms\n", name, 1e3 * parts.of(name));
  fmt::print("  {:<26}{:8.1f} ms, {:.2f} times the raw write\n", "checkpoint", 1e3 * fastest(whole), ratio);
  if (ratio <= at_most) return 0;
  fmt::print("more than {} times\n", at_most);
  return 1;
}

}  // namespace
}  // namespace antichain

int main(int argc, char** argv) {
  std::string model = "resnet18";
  int turns = 15;
  double at_most = 1e9;
  if (argc < 2) return fmt::print(stderr, "name a folder\n"), 2;
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--model") model = argv[i + 1];
    if (option == "--turns") turns = std::stoi(argv[i + 1]);
    if (option == "--at-most") at_most = std::stod(argv[i + 1]);
  }
  return antichain::run(argv[1], model, turns, at_most);
}
