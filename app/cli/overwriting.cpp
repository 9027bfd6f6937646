#include "app/cli/overwriting.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include "app/cli/output_file.h"
#include "app/cli/run_folder.h"
#include "framework/error.h"
#include "framework/files/checkpoint_folder.h"
#include "framework/files/checkpoint_remains.h"
#include "framework/files/folder_lock.h"
#include "framework/files/safetensors.h"
#include "framework/paths.h"
#include "models/graph_file.h"

namespace antichain {
namespace {

struct NamedFile {
  std::string option, file;
  bool written = false, folder = false;
};

std::vector<NamedFile> outputs;  // of the command that was parsed last

std::string last_name(const std::string& path) { return std::filesystem::path(path).filename(); }

std::vector<NamedFile> named_files(const CLI::App& command) {
  std::vector<NamedFile> files;
  for (const CLI::Option* option : command.get_options()) {
    const std::string type = option->get_type_name();
    const bool names_one = std::ranges::any_of(std::array{"FILE", "DIR", "FOLDER", "PATH"}, [&](auto* word) {
      return type.find(word) != std::string::npos;
    });
    if (option->count() == 0 || !names_one) continue;
    const std::string name = option->get_name(), file = option->results().back();
    const bool written = (option->get_group() == "Output" && name != "--config") || name == "--checkpoint";
    const bool folder = type == "DIR" || type == "FOLDER";
    if (!file.empty() && !(written && is_stream(file))) files.push_back({name, file, written, folder});
  }
  return files;
}

bool is_in_graph_folder(const std::string& file, const std::string& folder) {
  const std::array names = {graph_in_folder, weights_in_folder, check_in_folder};
  return std::ranges::find(names, last_name(file)) != names.end() && are_one(parent_of(file), folder);
}

// A network's folder is read by its name, or by that of the graph in it, and written by its name.
bool are_of_one_network(const std::string& output, const std::string& other) {
  return is_in_graph_folder(output, other) || is_in_graph_folder(other, output) ||
         (last_name(other) == graph_in_folder && is_in_graph_folder(output, parent_of(other)));
}

void check_pair(const NamedFile& one, const NamedFile& other) {
  if (!one.written || (one.folder && !other.written)) return;
  if (!are_one(one.file, other.file) && !are_of_one_network(one.file, other.file)) return;
  throw Error(other.written
                  ? fmt::format("{} and {} would be written to one {}, {}", one.option, other.option,
                                one.folder && other.folder ? "folder" : "file", one.file)
                  : fmt::format("{} would replace {}, which {} reads", one.option, one.file, other.option),
              one.folder ? "name another folder" : "name another file", ExitCode::usage);
}

bool is_checkpoint_folder(const std::string& folder) {
  return is_folder(folder) && why_no_checkpoint(resolved(folder), true).empty();
}

// A run that writes checkpoints to a folder leaves its lock there.
bool is_kept_in_checkpoints(const std::string& path) {
  return CheckpointFolder::is_name_of_ours(last_name(path)) && has_lock(parent_of(path));
}

// A run that goes on writes to its own folder again, and checks that itself.
bool is_kept_in_results(const std::string& file) {
  const std::string folder = parent_of(file);
  const auto is_goal = [&](const NamedFile& o) { return o.option == "--results" && are_one(o.file, folder); };
  return is_file_of_run(file, folder) && is_run_folder(folder) && std::ranges::none_of(outputs, is_goal);
}

// Returns the first bytes of a file, or "" where there is none.
std::string head_of(const std::string& file) {
  std::string head(64, '\0');
  std::ifstream in;
  if (is_plain_file(file)) in.open(file, std::ios::binary);
  in.read(head.data(), std::streamsize(head.size()));
  head.resize(size_t(in.gcount()));
  return head;
}

// JSON replaces JSON, and arrays replace arrays. Whatever else is there was not made by this program. A run
// that is resumed goes on with its metrics, and refuses others by itself.
void check_kind(const NamedFile& output, const CLI::App& app) {
  const std::string command = app.get_name();
  const CLI::Option* resume = app.get_option_no_throw("--resume");
  if (output.option == "--metrics" && resume && resume->count() > 0) return;
  const std::array of_json = {"--json", "--trace", "--metrics"};
  const bool json = std::ranges::find(of_json, output.option) != of_json.end();
  const std::array of_arrays = {"pack", "batches", "tokens"};
  const bool arrays = output.option == "--out" && std::ranges::find(of_arrays, command) != of_arrays.end();
  const std::string head = head_of(output.file);
  const size_t first = head.find_first_not_of(" \n");
  const bool is_json = first != head.npos && (head[first] == '{' || head[first] == '[');
  const bool is_arrays = head.starts_with("\x89HDF") || is_safetensors(head);
  if (head.empty() || (json ? is_json : !arrays || is_arrays)) return;
  throw Error(fmt::format("{} is there already and would be replaced, but it is no {}", output.file,
                          json ? "JSON" : "file of HDF5 or safetensors"),
              "name another file, or move that one", ExitCode::usage);
}

void refuse_output(const NamedFile& output, const std::string& what) {
  throw Error(fmt::format("{} would {} {}, {}", output.option, output.folder ? "write to" : "replace",
                          output.file, what),
              output.folder ? "name another folder" : "name another file", ExitCode::usage);
}

// Throws Error where an output would harm what an earlier run keeps.
void check_kept(const NamedFile& output) {
  if (is_checkpoint_folder(parent_of(output.file))) refuse_output(output, "which lies in a checkpoint");
  if (output.folder && is_checkpoint_folder(output.file)) refuse_output(output, "which is a checkpoint");
  if (is_kept_in_checkpoints(output.file) || (!output.folder && is_kept_in_results(output.file)))
    refuse_output(output, "which belongs to a run");
}

}  // namespace

void check_no_output_is(const std::string& what,
                        const std::function<bool(const std::string& file, const std::string& option)>& is) {
  for (const NamedFile& output : outputs)
    if (!output.folder && is(output.file, output.option)) refuse_output(output, what);
}

void check_no_output_is(const std::string& what, const std::vector<std::string>& files) {
  check_no_output_is(what, [&](const std::string& file, const std::string&) {
    return std::ranges::any_of(files, [&](const std::string& other) { return are_one(file, other); });
  });
}

void check_replaces_only(const std::string& kind, const std::string& file,
                         const std::function<void()>& read) {
  if (is_stream(file) || !exists(file)) return;
  try {
    read();
  } catch (const Error&) {
    throw Error(fmt::format("{} is there already and would be replaced, but it is not {}", file, kind),
                "name another file, or move that one", ExitCode::usage);
  }
}

void check_nothing_is_overwritten(const CLI::App& command) {
  const std::vector<NamedFile> files = named_files(command);
  for (size_t i = 0; i < files.size(); ++i)
    for (size_t j = 0; j < files.size(); ++j)
      if (i != j) check_pair(files[i], files[j]);
  outputs = files;
  std::erase_if(outputs, [](const NamedFile& file) { return !file.written; });
  for (const NamedFile& output : outputs) {
    check_kept(output);
    check_kind(output, command);
  }
}

}  // namespace antichain
