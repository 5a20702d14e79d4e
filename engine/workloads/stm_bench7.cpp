#include "engine/workloads/stm_bench7.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kilokv::engine {

namespace {

class LibraryAudit : public StateAudit {
 public:
  explicit LibraryAudit(const DesignLibrary& library)
      : library_(library), parts_(library.parts), late_(library.composites, 0), changes_(library.assemblies, 0) {}

  void add(std::string_view key, std::int64_t integer, std::string_view) override {
    const std::uint64_t index = KeyName::index_of(key);
    const bool is_composite = key.starts_with("s7cd"), is_assembly = key.starts_with("s7as");
    if (index >= (is_composite ? late_.size() : is_assembly ? changes_.size() : parts_.size())) return;
    if (key.starts_with("s7ax")) parts_[index].x = integer;
    if (key.starts_with("s7ay")) parts_[index].y = integer;
    if (key.starts_with("s7ad")) late_[DesignLibrary::composite_of(index)] += integer;
    if (is_composite) late_[index] -= integer;
    if (is_assembly) changes_[index] = integer;
  }

  std::string violation() const override {
    for (std::uint64_t part = 0; part < library_.parts; ++part) {
      const std::int64_t x = DesignLibrary::x(part), y = DesignLibrary::y(part);
      const auto& [now_x, now_y] = parts_[part];
      if ((now_x == x && now_y == y) || (now_x == y && now_y == x)) continue;
      return "x and y of atomic part " + std::to_string(part) + " are not those of the start";
    }
    for (std::uint64_t composite = 0; composite < library_.composites; ++composite) {
      if (late_[composite] == 0) continue;
      return "composite part " + std::to_string(composite) + ": its parts' dates are " +
             std::to_string(late_[composite]) + " later than it says";
    }
    for (std::uint64_t assembly = 0; assembly < library_.first_base; ++assembly) {
      const std::int64_t* const below = changes_.data() + assembly * DesignLibrary::kFanout + 1;
      const std::int64_t difference = changes_[assembly] - below[0] - below[1] - below[2];
      if (difference == 0) continue;
      return "assembly " + std::to_string(assembly) + " has " + std::to_string(difference) +
             " more changes than those below it";
    }
    return {};
  }

 private:
  struct Part {
    std::int64_t x = 0, y = 0;
  };

  DesignLibrary library_;
  std::vector<Part> parts_;
  std::vector<std::int64_t> late_;     // by composite part
  std::vector<std::int64_t> changes_;  // by assembly
};

}  // namespace

// The tree has at least a root above three base assemblies, so that each number of changes is stored twice.
DesignLibrary::DesignLibrary(std::uint64_t atomic_parts)
    : parts(atomic_parts), composites((parts + kParts - 1) / kParts) {
  std::uint64_t bases = 1;
  do {
    first_base = assemblies;
    bases *= kFanout;
    assemblies += bases;
  } while (bases < composites);
}

void StmBench7::for_each_initial(const InitialVisitor& visit) const {
  const auto all = [&](std::string_view prefix, std::uint64_t count, const auto& value_of) {
    for (std::uint64_t i = 0; i < count; ++i) visit({.key = KeyName(prefix, i).view(), .integer = value_of(i)});
  };
  all("s7ad", library_.parts, [](std::uint64_t part) { return DesignLibrary::date(part); });
  all("s7as", library_.assemblies, [](std::uint64_t) { return std::int64_t{0}; });
  all("s7ax", library_.parts, [](std::uint64_t part) { return DesignLibrary::x(part); });
  all("s7ay", library_.parts, [](std::uint64_t part) { return DesignLibrary::y(part); });
  all("s7cd", library_.composites, [&](std::uint64_t composite) {
    std::int64_t sum = 0;
    for (std::uint64_t i = 0; i < library_.parts_of(composite); ++i) {
      sum += DesignLibrary::date(composite * DesignLibrary::kParts + i);
    }
    return sum;
  });
}

InvariantRule StmBench7::invariant() const {
  return {.statement = "x and y, dates and changes of " + std::to_string(library_.parts) + " atomic parts and " +
                       std::to_string(library_.assemblies) + " assemblies agree",
          .records = 3 * library_.parts + library_.composites + library_.assemblies,
          .integers = true,
          .never_negative = true,
          .audit = std::make_unique<LibraryAudit>(library_)};
}

}  // namespace kilokv::engine
