// The certificate of the server, its key, and the authorities of its clients, as they are in their files now. A thread
// looks at the files once a second. New content replaces the old one only if it is good as a whole. Otherwise the old
// one stays, and the log says once what is wrong. So a pair is replaced as a whole, also if its files are replaced one
// after the other.
//
// Nothing of a key is logged or written anywhere.
//
// Thread safety: any thread may call current(). One thread opens, starts and destroys the object.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "engine/base/status.hpp"
#include "server/service/options.hpp"
#include "tls/files.hpp"
#include "tls/trust.hpp"

namespace kilokv::server {

// Never changes after it was read.
struct TlsContent {
  tls::Pair pair;
  std::shared_ptr<const tls::Trust> clients;  // null: clients show no certificate
};

class TlsFiles {
 public:
  // The seconds since 1970. A parameter for tests.
  using Now = std::function<std::int64_t()>;
  enum class Level { info, warning, error };
  // Gets the lines of the log.
  using Log = std::function<void(Level level, const std::string& what, const std::string& detail)>;

  // Reads the files. INVALID_ARGUMENT names the flag and the file, and says what is wrong.
  static Result<std::unique_ptr<TlsFiles>> open(const TlsOptions& options, Now now, Log log);
  ~TlsFiles();  // stops the thread

  // Starts the thread that looks at the files. After each look, it calls `looked` with what the server uses.
  using Looked = std::function<void(const TlsContent& content)>;
  void start(Looked looked = {});
  void stop();  // the thread has ended after that
  std::shared_ptr<const TlsContent> current() const;

  // Looks at the files once. Only the thread calls it, or a test that has not called start().
  void look();

 private:
  TlsFiles(TlsOptions options, Now now, Log log);
  // Identifies what the files are now: their inodes, sizes and times.
  std::string fingerprint() const;
  std::string read(std::shared_ptr<const TlsContent>* content) const;
  void take(std::shared_ptr<const TlsContent> content);
  void warn_of_dates();

  const TlsOptions options_;
  const Now now_;
  const Log log_;
  mutable std::mutex mutex_;  // of the next three
  std::shared_ptr<const TlsContent> content_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;

  // Only look() uses these after open().
  std::string taken_;    // the fingerprint of the files at the last good read
  std::string refused_;  // likewise, of the last read that found something wrong
  bool told_ = false;    // the log has what was wrong at that read
  std::int64_t warned_at_ = 0;
};

}  // namespace kilokv::server
