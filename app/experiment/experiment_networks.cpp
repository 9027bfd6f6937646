#include "app/experiment/experiment_networks.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <sstream>

#include "app/cli/child_process.h"
#include "framework/error.h"
#include "framework/paths.h"
#include "framework/version.h"

namespace antichain {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> split(const std::string& list, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(list);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  if (list.empty() || list.back() == separator) parts.emplace_back();
  return parts;
}

[[noreturn]] void refuse_list(const std::string& option, const std::string& what, const std::string& text) {
  throw Error(fmt::format("{} takes {} with commas between them, each once, not '{}'", option, what, text),
              "", ExitCode::usage);
}

// The profiler writes the file as a whole or not at all, so an existing file is complete.
std::string measured(const ProfileSource& source, const std::string& model) {
  const fs::path file = fs::path(source.cache) /
                        fmt::format("{}-{}-{}-{}.json", model, source.form, source.microbatch, source.ranks);
  if (is_plain_file(file)) return file.string();
  make_folders(source.cache);
  constexpr int microbatches = 4;
  const std::string log = file.string() + ".log";
  std::vector<std::string> words = {"profile",
                                    "--form",
                                    source.form,
                                    "--batch",
                                    std::to_string(source.microbatch * microbatches),
                                    "--microbatches",
                                    std::to_string(microbatches),
                                    "--json",
                                    file.string()};
  const std::vector<std::string> network = words_for(source.own, model);
  words.insert(words.end(), network.begin(), network.end());
  words.insert(words.end(), source.options.begin(), source.options.end());
  const int code = run_child(launch(source.launcher, source.ranks, words), log);
  if (StopSignals::requested()) throw Error("stopped while measuring " + model, "", ExitCode::stopped);
  if (code != 0 || !is_plain_file(file))
    throw Error(fmt::format("measuring {} ended with code {}: {}", model, code, last_words(log)),
                "see " + log, ExitCode::peer_failed);
  return file.string();
}

}  // namespace

std::vector<std::string> words_for(const OwnNetwork& own, const std::string& model) {
  if (!own.graph.empty() && own.model == model) return {"--graph", own.graph};
  return {"--model", model};
}

const std::vector<std::string>& paper_models() {
  static const std::vector<std::string> models = {"vgg16",       "resnet18",     "resnet50",   "resnet101",
                                                  "alexnet",     "resnext50",    "resnext101", "inception_v3",
                                                  "densenet121", "squeezenet1_0"};
  return models;
}

std::vector<std::string> parse_list(const std::string& text, const std::string& option,
                                    const std::vector<std::string>& all) {
  if (text == "all") return all;
  const std::vector<std::string> parts = split(text, ',');
  for (const std::string& part : parts)
    if (part.empty() || std::ranges::count(parts, part) > 1) refuse_list(option, "names", text);
  return parts;
}

std::vector<int> parse_counts(const std::string& text, const std::string& option, int most) {
  std::vector<int> counts;
  for (const std::string& part : split(text, ',')) {
    int count = 0;
    const auto [stop, failed] = std::from_chars(part.data(), part.data() + part.size(), count);
    if (failed != std::errc() || stop != part.data() + part.size() || count < 1 || count > most ||
        std::ranges::find(counts, count) != counts.end())
      refuse_list(option, fmt::format("numbers from 1 to {}", most), text);
    counts.push_back(count);
  }
  return counts;
}

std::string profile_file(const ProfileSource& source, const std::string& model) {
  if (source.given.empty()) return measured(source, model);
  const fs::path folder = source.given;
  for (const fs::path& file :
       {folder / (model + ".txt"), folder / (model + ".json"), folder / model / "graph.txt"})
    if (is_plain_file(file)) return file.string();
  throw Error(fmt::format("{0} has no profile of {1}: neither {1}.txt nor {1}.json nor {1}/graph.txt",
                          folder.string(), model),
              "give another --profiles, or --models without it");
}

void check_launcher(const std::string& launcher) {
  if (launcher.empty()) return;
  std::string program;
  std::istringstream(launcher) >> program;
  if (!has_program(program))
    throw Error(fmt::format("--launcher begins with '{}', which is no program here", program),
                "write it as on a command line: \"mpirun -n {}\"", ExitCode::usage);
  if (launcher.find("{}") == std::string::npos)
    throw Error(fmt::format("--launcher '{}' does not say how many ranks to start", launcher),
                "write {} for their number: \"mpirun -n {}\"", ExitCode::usage);
}

std::vector<std::string> launch(const std::string& launcher, int ranks,
                                const std::vector<std::string>& words) {
  std::vector<std::string> all;
  std::istringstream in(launcher);
  for (std::string word; in >> word;) {
    if (const size_t at = word.find("{}"); at != std::string::npos)
      word.replace(at, 2, std::to_string(ranks));
    all.push_back(word);
  }
  all.push_back(own_program());
  all.insert(all.end(), words.begin(), words.end());
  if (launcher.empty()) all.insert(all.end(), {"--local", std::to_string(ranks)});
  return all;
}

}  // namespace antichain
