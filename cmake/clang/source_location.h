// This is std::source_location for clang 14, which lacks the builtin that the standard library asks for.
// Builds by clang include it before everything else (-include).
#pragma once

#if !__has_builtin(__builtin_source_location)
namespace std {

class source_location {
 public:
  static constexpr source_location current(const char* file = __builtin_FILE(),
                                           unsigned line = __builtin_LINE(),
                                           const char* function = __builtin_FUNCTION()) {
    return source_location(file, line, function);
  }
  constexpr const char* file_name() const { return file_; }
  constexpr unsigned line() const { return line_; }
  constexpr unsigned column() const { return 0; }
  constexpr const char* function_name() const { return function_; }

 private:
  constexpr source_location(const char* file, unsigned line, const char* function)
      : file_(file), function_(function), line_(line) {}
  const char *file_, *function_;
  unsigned line_;
};

}  // namespace std
#endif
