// Asks what is at a path. What can't be found out is an Error of one sentence, and never counts as "nothing
// is there": a folder that can't be entered may hold what must not be overwritten. All code asks here,
// because the functions of std::filesystem either throw another kind of error, or take every error for "no".
#pragma once

#include <string>
#include <vector>

namespace antichain {

// Each follows links, and throws Error with the path and the system's reason, unless nothing is there.
bool exists(const std::string& path);
bool is_folder(const std::string& path);
bool is_plain_file(const std::string& path);
bool is_link(const std::string& path);  // does not follow it

// Returns the names in a folder in alphabetical order. Throws Error where it can't be listed.
std::vector<std::string> names_in(const std::string& folder);
// Makes a client of a file server ask for the server's state of the folder, by listing it.
void look_again(const std::string& folder) noexcept;
// Makes the folder and those above it, where they are missing. Throws Error where it can't.
void make_folders(const std::string& path);

// Returns the folder of a file: "." for a name alone.
std::string parent_of(const std::string& file);
// Returns the path without links and dots, as far as it is there.
std::string resolved(const std::string& path);
// Returns whether two names lead to one file, or would if it were written: by links or another spelling, too.
bool are_one(const std::string& a, const std::string& b);
bool is_within(const std::string& file, const std::string& folder);  // at any depth

}  // namespace antichain
