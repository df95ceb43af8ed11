// Which file a path leads to, whatever its name there.
#ifndef WARPSMITH_REWARD_SERVICE_JAIL_FILE_IDENTITIES_H_
#define WARPSMITH_REWARD_SERVICE_JAIL_FILE_IDENTITIES_H_

#include <sys/stat.h>

#include <set>
#include <string>
#include <utility>

namespace warpsmith {

// A set of files. A sandbox may have a file under two paths, and a library that was loaded by the one is not loaded
// again by the other.
class FileIdentities {
 public:
  // Leaves out paths that lead to no file.
  explicit FileIdentities(const std::set<std::string>& paths) {
    struct stat status {};
    for (const std::string& path : paths) {
      if (stat(path.c_str(), &status) == 0) files_.emplace(status.st_dev, status.st_ino);
    }
  }
  bool Have(const std::string& path) const {
    struct stat status {};
    return stat(path.c_str(), &status) == 0 && files_.count({status.st_dev, status.st_ino}) != 0;
  }

 private:
  std::set<std::pair<dev_t, ino_t>> files_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_JAIL_FILE_IDENTITIES_H_
