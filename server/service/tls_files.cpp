// Role: see tls_files.hpp.
#include "server/service/tls_files.hpp"

#include <pthread.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

namespace kilokv::server {
namespace {

constexpr std::chrono::seconds kLookInterval{1};
constexpr std::int64_t kDaySeconds = 86400;
constexpr std::int64_t kWarnSeconds = 14 * kDaySeconds;

void add_to(std::string* fingerprint, const std::string& path) {
  struct stat about {};
  const int failed = ::stat(path.c_str(), &about);
  *fingerprint += path + '|';
  if (failed != 0) return;
  for (const auto number :
       {static_cast<std::int64_t>(about.st_dev), static_cast<std::int64_t>(about.st_ino),
        static_cast<std::int64_t>(about.st_size), std::int64_t{about.st_mtim.tv_sec},
        std::int64_t{about.st_mtim.tv_nsec}, std::int64_t{about.st_ctim.tv_sec}, std::int64_t{about.st_ctim.tv_nsec}}) {
    *fingerprint += std::to_string(number) + ',';
  }
}

}  // namespace

TlsFiles::TlsFiles(TlsOptions options, Now now, Log log)
    : options_(std::move(options)), now_(std::move(now)), log_(std::move(log)) {}

TlsFiles::~TlsFiles() { stop(); }

void TlsFiles::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

Result<std::unique_ptr<TlsFiles>> TlsFiles::open(const TlsOptions& options, Now now, Log log) {
  std::unique_ptr<TlsFiles> files(new TlsFiles(options, std::move(now), std::move(log)));
  files->taken_ = files->fingerprint();
  std::shared_ptr<const TlsContent> content;
  const std::string problem = files->read(&content);
  if (!problem.empty()) return Status(StatusCode::invalid_argument, problem);
  files->take(std::move(content));
  return files;
}

void TlsFiles::start(Looked looked) {
  thread_ = std::thread([this, looked = std::move(looked)] {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, kLookInterval, [this] { return stopping_; })) {
      lock.unlock();
      look();
      if (looked) looked(*current());
      lock.lock();
    }
  });
  pthread_setname_np(thread_.native_handle(), "tls-files");
}

std::shared_ptr<const TlsContent> TlsFiles::current() const {
  const std::lock_guard lock(mutex_);
  return content_;
}

std::string TlsFiles::fingerprint() const {
  std::string all;
  for (const std::string& file : {options_.cert_file, options_.key_file, options_.client_ca_file}) add_to(&all, file);
  if (options_.crl_dir.empty()) return all;
  add_to(&all, options_.crl_dir);
  std::vector<std::string> lists;
  std::error_code error;
  std::filesystem::directory_iterator file(options_.crl_dir, error);
  for (; !error && file != std::filesystem::directory_iterator(); file.increment(error)) {
    lists.push_back(file->path().string());
  }
  std::sort(lists.begin(), lists.end());
  for (const std::string& list : lists) add_to(&all, list);
  return all;
}

std::string TlsFiles::read(std::shared_ptr<const TlsContent>* content) const {
  auto made = std::make_shared<TlsContent>();
  std::string problem = tls::read_pair(options_.cert_file, options_.key_file, &made->pair);
  if (!problem.empty()) return "--tls-cert, --tls-key: " + problem;
  if (!options_.client_ca_file.empty()) {
    problem = tls::Trust::read(options_.client_ca_file, "the authorities of the server (--tls-client-ca)",
                               options_.crl_dir, &made->clients);
    if (!problem.empty()) {
      return (options_.crl_dir.empty() ? "--tls-client-ca: " : "--tls-client-ca, --tls-crl-dir: ") + problem;
    }
  }
  *content = std::move(made);
  return {};
}

void TlsFiles::take(std::shared_ptr<const TlsContent> content) {
  if (tls::others_may_read(options_.key_file)) {
    log_(Level::warning, "kilokvd finds that all users of the machine may read the key of its certificate",
         options_.key_file);
  }
  if (content->clients != nullptr && !content->clients->warning().empty()) {
    log_(Level::warning, "kilokvd has an old revocation list", content->clients->warning());
  }
  {
    const std::lock_guard lock(mutex_);
    content_ = std::move(content);
  }
  warned_at_ = 0;
  warn_of_dates();
}

// Files that are replaced one after the other do not match for a moment. So a problem is logged only if the next look
// finds the same files.
void TlsFiles::look() {
  std::string now = fingerprint();
  if (now == taken_) {
    refused_.clear();
    warn_of_dates();
    return;
  }
  if (now == refused_ && told_) return warn_of_dates();
  std::shared_ptr<const TlsContent> content;
  const std::string problem = read(&content);
  if (now != fingerprint()) return;  // the files changed meanwhile; the next look reads them again
  if (problem.empty()) {
    take(content);
    log_(Level::info, "kilokvd uses new TLS files; open connections stay",
         content->pair.subject + ", valid until " + tls::time_text(content->pair.valid_until));
    taken_ = std::move(now);
    refused_.clear();
    return;
  }
  const bool is_same = now == refused_;
  if (is_same) log_(Level::error, "kilokvd keeps its old TLS files, because the new ones cannot be used", problem);
  told_ = is_same;
  refused_ = std::move(now);
}

// Warns once a day.
void TlsFiles::warn_of_dates() {
  const std::int64_t now = now_();
  if (warned_at_ != 0 && now - warned_at_ < kDaySeconds) return;
  const std::shared_ptr<const TlsContent> content = current();
  const tls::Pair& pair = content->pair;
  if (now >= pair.valid_until) {
    log_(Level::warning, "kilokvd has a certificate that has expired: clients refuse it",
         "expired on " + tls::time_text(pair.valid_until));
  } else if (now < pair.valid_from) {
    log_(Level::warning, "kilokvd has a certificate that is not valid yet: clients refuse it",
         "valid from " + tls::time_text(pair.valid_from));
  } else if (pair.valid_until - now < kWarnSeconds) {
    log_(Level::warning, "kilokvd has a certificate that expires soon",
         "valid until " + tls::time_text(pair.valid_until));
  } else {
    return;
  }
  warned_at_ = now;
}

}  // namespace kilokv::server
