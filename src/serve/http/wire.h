// The bytes of one connection, whatever carries them: TCP, TLS, or memory in a test.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace limber {

// Whoever reads and writes; called on the connection's thread, never from within a call of the wire.
class WireUser {
 public:
  virtual ~WireUser() = default;
  virtual void on_open(bool ok) = 0;
  virtual void on_read(size_t bytes, bool ok) = 0;  // not ok: the end, or the connection broke
  virtual void on_written(bool ok) = 0;
};

// One call of each kind at a time; the user is kept alive until its call. All calls on the connection's
// thread.
class Wire {
 public:
  virtual ~Wire() = default;
  virtual void open(std::shared_ptr<WireUser> user) = 0;  // before everything else
  virtual void read(std::span<char> to, std::shared_ptr<WireUser> user) = 0;
  // All of `parts`, whose bytes must stay until on_written.
  virtual void write(std::span<const std::string_view> parts, std::shared_ptr<WireUser> user) = 0;
  // Tells the other side that nothing more will be written, then calls on_written. What it still sends can be
  // read. `clean`: no read is under way and nothing more is expected, so that there is time to be polite.
  virtual void finish(bool clean, std::shared_ptr<WireUser> user) = 0;
  virtual void close() = 0;  // calls under way end with not ok

  virtual std::string peer() const = 0;             // "127.0.0.1:49152"
  virtual bool has_client_certificate() const = 0;  // one that was checked
};

}  // namespace limber
