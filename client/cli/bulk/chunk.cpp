// Role: see chunk.hpp.
#include "client/cli/bulk/chunk.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace kilokv::client {
namespace {

// The number in the brackets after `list`, such as 17 in transactions[0].then[17].key.
std::optional<std::size_t> index_in(std::string_view field, std::string_view list) {
  const std::size_t at = field.find(list);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view digits = field.substr(at + list.size());
  std::size_t index = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  return failed == std::errc() ? std::optional(index) : std::nullopt;
}

}  // namespace

const char* to_string(Existing existing) {
  switch (existing) {
    case Existing::overwrite: return "overwrite";
    case Existing::keep: return "keep";
    case Existing::refuse: return "refuse";
  }
  return "overwrite";
}

void Chunk::add_lines(std::string_view text, std::uint64_t lines) {
  text_.append(text);
  next_line_ += lines;
}

void Chunk::add_record(std::string_view text, std::uint64_t lines, const Record& record) {
  Entry entry;
  entry.line = next_line_;
  entry.text_begin = text_.size();
  entry.text_size = text.size();
  add_lines(text, lines);
  entry.key_begin = bytes_.size();
  entry.key_size = record.key.size();
  entry.expires_at_us = record.expires_at_us;
  bytes_.append(record.key);
  if (const auto* integer = std::get_if<std::int64_t>(&record.value)) {
    entry.is_integer = true;
    entry.integer = *integer;
  } else {
    const std::string_view value = std::get<std::string_view>(record.value);
    entry.value_begin = bytes_.size();
    entry.value_size = value.size();
    bytes_.append(value);
  }
  entries_.push_back(entry);
}

void Chunk::cut(std::uint64_t line, std::size_t text_begin) {
  text_.resize(text_begin);
  next_line_ = line;
  while (!entries_.empty() && entries_.back().text_begin >= text_begin) entries_.pop_back();
}

InputPlace Chunk::end() const {
  InputPlace end = begin_;
  end.line = next_line_;
  end.bytes += text_.size();
  end.digest.add(text_);
  return end;
}

std::size_t Chunk::count(Use use) const {
  const auto is_so = [use](const Entry& entry) { return entry.use == use; };
  return static_cast<std::size_t>(std::count_if(entries_.begin(), entries_.end(), is_so));
}

std::size_t Chunk::integers() const {
  const auto is_so = [](const Entry& entry) { return entry.use == Use::write && entry.is_integer; };
  return static_cast<std::size_t>(std::count_if(entries_.begin(), entries_.end(), is_so));
}

std::vector<std::size_t> Chunk::written() const {
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].use == Use::write) all.push_back(i);
  }
  return all;
}

void Chunk::append_puts(const ChunkRules& rules, Batch* batch) const {
  for (const Entry& entry : entries_) {
    if (entry.use != Use::write) continue;
    const Key key = batch->key(key_of(entry));
    if (rules.existing != Existing::overwrite) batch->guard_absent(key);
    Expiry expiry;
    if (entry.expires_at_us != 0) expiry = ExpiresAt{entry.expires_at_us};
    if (entry.is_integer) {
      batch->put(key, entry.integer, expiry);
    } else {
      batch->put(key, view(entry.value_begin, entry.value_size), expiry);
    }
  }
}

bool Chunk::append_transaction(const ChunkRules& rules, bool may_wait, Batch* batch) const {
  const bool has_position = !rules.position_key.empty();
  if (!has_position && count(Use::write) == 0) return false;
  batch->begin({.precedence = 0, .wait_timeout_us = has_position && may_wait ? rules.wait_us : 0});
  Key position{};
  if (has_position) {
    position = batch->key(rules.position_key);
    batch->guard_bytes(position, position_text(rules.position, begin_), OnFalse::wait);
  }
  append_puts(rules, batch);
  if (has_position) batch->put(position, position_text(rules.position, end()));
  batch->end();
  return true;
}

void Chunk::append_probes(Batch* batch) const {
  for (const Entry& entry : entries_) {
    if (entry.use != Use::write) continue;
    batch->begin();
    batch->guard_exists(batch->key(key_of(entry)));
    batch->end();
  }
}

std::optional<std::size_t> Chunk::entry_of(const ChunkRules& rules, const Error& error) const {
  std::optional<std::size_t> index = index_in(error.field, ".then[");
  if (!index) {
    index = index_in(error.field, ".guards[");
    const std::size_t before = rules.position_key.empty() ? 0 : 1;
    if (!index || *index < before) return std::nullopt;
    *index -= before;
  }
  const std::vector<std::size_t> all = written();
  return *index < all.size() ? std::optional(all[*index]) : std::nullopt;
}

}  // namespace kilokv::client
