// These tests read the #include lines of the whole repository. They say who may include whom
// (CONTRIBUTING.md, "Boundaries"), and which libraries only some folders see. So there are no cycles between
// folders. They also say who writes to standard error.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/repository/repository.h"

namespace antichain {
namespace {

namespace fs = std::filesystem;

const std::map<std::string, std::set<std::string>> may_include{
    {"framework", {}},
    {"layers", {"framework"}},
    {"models", {"layers", "framework"}},
    {"partition", {"framework"}},
    {"data", {"framework"}},
    {"pipeline", {"partition", "data", "framework"}},
    {"app", {"pipeline", "partition", "data", "models", "layers", "framework"}},
};

// Rooms: the folders within these, and which rooms of the same folder each may include. The files directly in
// a folder may include all of its rooms; no room may include them.
using Rooms = std::map<std::string, std::set<std::string>>;
const std::map<std::string, Rooms> rooms_of{
    {"framework", {{"files", {}}, {"cuda", {}}}},
    {"partition",
     {{"profile", {}},
      {"plan", {"profile"}},
      {"search", {"profile", "plan"}},
      {"planners", {"profile", "plan", "search"}}}},
    {"pipeline",
     {{"schedule", {}},
      {"host", {}},
      {"device", {}},
      {"program", {"schedule"}},
      {"simulate", {"schedule", "program"}},
      {"stage", {"schedule", "program"}},
      {"transport", {"host", "device"}},
      {"cuda", {"device", "transport"}},
      {"planning", {"schedule", "program", "simulate"}},
      {"run", {"schedule", "program", "host", "device", "simulate", "stage", "transport"}},
      {"rehearse", {"schedule", "program", "host", "simulate", "transport", "run"}},
      {"measure", {"schedule", "host", "device", "simulate", "stage", "transport", "run"}},
      {"train", {"schedule", "host", "stage", "transport", "run"}}}},
    {"app",
     {{"cli", {}},
      {"options", {"cli"}},
      {"job", {"cli", "options"}},
      {"obtain", {"cli", "options", "job"}},
      {"report", {"cli", "options", "job", "obtain"}},
      {"train", {"cli", "options", "job", "obtain", "report"}},
      {"commands", {"cli", "options", "job", "obtain", "report", "train"}},
      {"data", {"cli", "options", "obtain"}},
      {"doctor", {"cli", "options", "job", "obtain"}}}},
};

// A Home is "pipeline" and "schedule" of "pipeline/schedule/schedule.h". A file directly in a folder has no
// room.
struct Home {
  std::string folder, room;
};
Home home_of(const std::string& path) {
  const size_t first = path.find('/'), second = path.find('/', first + 1);
  if (first == std::string::npos) return {path, ""};
  return {path.substr(0, first),
          second == std::string::npos ? "" : path.substr(first + 1, second - first - 1)};
}

struct Include {
  std::string file, target;  // relative to the root; as written
  std::string folder() const { return file.substr(0, file.find('/')); }
};

std::vector<Include> includes_in(const fs::path& file) {
  static const std::regex line_form(R"(^\s*#\s*include\s*[<"]([^>"]+)[>"])");
  std::vector<Include> found;
  std::ifstream in(file);
  std::smatch match;
  for (std::string line; std::getline(in, line);) {
    if (std::regex_search(line, match, line_form))
      found.push_back({fs::relative(file, root).string(), match[1]});
  }
  return found;
}

std::vector<Include> all_includes() {
  static const std::set<std::string> source_ends{".h", ".cpp", ".cu", ".cuh"};
  std::vector<Include> all;
  for (const auto& [folder, allowed] : may_include) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (!source_ends.contains(entry.path().extension().string())) continue;
      const std::vector<Include> some = includes_in(entry.path());
      all.insert(all.end(), some.begin(), some.end());
    }
  }
  return all;
}

// Returns "" when the include is allowed, otherwise why it isn't.
std::string objection(const Include& include) {
  const std::string target_folder = include.target.substr(0, include.target.find('/'));
  if (may_include.contains(target_folder) && target_folder != include.folder() &&
      !may_include.at(include.folder()).contains(target_folder)) {
    return include.folder() + "/ may not include " + target_folder + "/";
  }
  const Home here = home_of(include.file), there = home_of(include.target);
  if (rooms_of.contains(here.folder) && here.folder == there.folder && here.room != there.room) {
    const Rooms& rooms = rooms_of.at(here.folder);
    const bool into_folder = there.room.empty() && here.folder != "framework";
    if (!here.room.empty() &&
        (into_folder || (!there.room.empty() && !rooms.at(here.room).contains(there.room))))
      return here.folder + "/" + here.room + "/ may not include " + here.folder + "/" + there.room;
    if (here.folder == "framework" && here.room.empty()) return "framework/ may not include its rooms";
  }
  const auto only_in = [&](const std::string& pattern, const std::string& places) -> std::string {
    const bool concerned = std::regex_search(include.target, std::regex(pattern));
    const bool allowed = std::regex_search(include.file, std::regex(places));
    return concerned && !allowed ? "only files that match '" + places + "' may include it" : "";
  };
  for (const auto& [pattern, places] : std::map<std::string, std::string>{
           {"^mpi\\.h$", "^pipeline/transport/mpi_"},
           {"^nccl", "^pipeline/cuda/(nccl_|communicators)"},
           {"(^|/)dnnl\\.hp?p?$|^oneapi/", "^layers/cpu/"},
           {"^(cuda|cudnn|cublas|nvtx)", "(^|/)cuda/"},
           {"^hdf5", "^framework/files/hdf5"},
           {"^CLI/", "^app/"},
           {"^toml\\+\\+", "^app/cli/settings_file\\.cpp$"},
           {"^models/(?!graph_file\\.h$)", "^(app|models)/"},
       }) {
    if (const std::string why = only_in(pattern, places); !why.empty()) return why;
  }
  return "";
}

TEST(IncludeRules, EveryIncludeIsAllowed) {
  const std::vector<Include> all = all_includes();
  ASSERT_GT(all.size(), 100u) << "the sources were not found below " << root;
  for (const Include& include : all) {
    const std::string why = objection(include);
    EXPECT_EQ(why, "") << include.file << " includes " << include.target;
  }
}

TEST(IncludeRules, TheRulesCatchWhatTheyMust) {
  EXPECT_NE(objection({"framework/graph.h", "layers/conv2d.h"}), "");
  EXPECT_NE(objection({"partition/plan/plan.h", "pipeline/schedule/schedule.h"}), "");
  EXPECT_NE(objection({"data/loader.h", "models/resnet.h"}), "");
  EXPECT_NE(objection({"app/main.cpp", "mpi.h"}), "");
  EXPECT_NE(objection({"layers/conv2d.cpp", "oneapi/dnnl/dnnl.hpp"}), "");
  EXPECT_NE(objection({"framework/backend.cpp", "cuda_runtime.h"}), "");
  EXPECT_EQ(objection({"layers/cpu/conv2d.cpp", "dnnl.hpp"}), "");
  EXPECT_EQ(objection({"layers/cpu/conv2d.cpp", "layers/cpu/dnnl.h"}), "");
  EXPECT_EQ(objection({"pipeline/transport/mpi_transport.cpp", "mpi.h"}), "");
  EXPECT_NE(objection({"pipeline/transport/agree.cpp", "mpi.h"}), "");
  EXPECT_NE(objection({"pipeline/schedule/schedule.h", "pipeline/run/runner.h"}), "");
  EXPECT_NE(objection({"pipeline/schedule/schedule.h", "pipeline/transport/transport.h"}), "");
  EXPECT_NE(objection({"framework/graph.h", "framework/files/weights.h"}), "");
  EXPECT_NE(objection({"app/cli/table.h", "app/run.h"}), "");
  EXPECT_EQ(objection({"framework/files/weights.h", "framework/tensor.h"}), "");
  EXPECT_EQ(objection({"app/run.cpp", "app/cli/commands.h"}), "");
  EXPECT_NE(objection({"pipeline/transport/transport.h", "pipeline/schedule/schedule.h"}), "");
  EXPECT_EQ(objection({"pipeline/run/runner.h", "partition/plan/plan.h"}), "");
}

// Every room stands on rooms that are finished without it: taking away those that need nothing more takes
// away all.
TEST(IncludeRules, TheRoomsHaveNoCircle) {
  for (const auto& [folder, rooms] : rooms_of) {
    Rooms left = rooms;
    for (bool found = true; found;) {
      found = false;
      for (auto room = left.begin(); room != left.end(); ++room) {
        const auto built = [&](const std::string& other) { return !left.contains(other); };
        if (!std::ranges::all_of(room->second, built)) continue;
        left.erase(room);
        found = true;
        break;
      }
    }
    EXPECT_TRUE(left.empty()) << folder << "/" << (left.empty() ? "" : left.begin()->first);
  }
}

TEST(IncludeRules, EveryHeaderSaysItsIdea) {
  for (const auto& [folder, allowed] : may_include) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (entry.path().extension() != ".h") continue;
      std::ifstream in(entry.path());
      const std::string text{std::istreambuf_iterator<char>(in), {}};
      EXPECT_NE(text.find("#pragma once"), std::string::npos) << entry.path();
      EXPECT_EQ(text.rfind("//", 0), 0u) << entry.path() << " does not begin by saying its idea";
    }
  }
}

// fmt::print throws where standard error is closed or full, which would end a run because of a warning.
TEST(StandardError, OnlySayWritesToIt) {
  static const std::set<std::string> may_name_it{
      "framework/say.cpp", "app/cli/output_file.cpp", "app/cli/terminal.cpp", "data/obtain.cpp",
      // Within a signal handler, which may call write(2) and nothing of ours.
      "pipeline/host/stop_signals.cpp"};
  for (const auto& [folder, allowed] : may_include)
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string file = fs::relative(entry.path(), root).string();
      if (!entry.is_regular_file() || may_name_it.contains(file)) continue;
      std::ifstream in(entry.path());
      for (std::string line; std::getline(in, line);) {
        const std::string code = line.substr(0, line.find("//"));
        for (const char* name : {"(stderr", " stderr)", "STDERR_FILENO", "std::cerr", "std::clog", "perror("})
          EXPECT_EQ(code.find(name), std::string::npos) << file << ": " << line << "\nuse framework/say.h";
      }
    }
}

}  // namespace
}  // namespace antichain
