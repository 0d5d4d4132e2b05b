# Run by cpack once everything is in its staging folder: what Debian wants in other places than others do.
set(staging "${CPACK_TEMPORARY_INSTALL_DIRECTORY}")
set(share "${staging}/runtime/usr/share")
set(documents "${share}/doc/limber")

function(compress file)
  execute_process(COMMAND gzip -9nf "${file}" COMMAND_ERROR_IS_FATAL ANY)
endfunction()

compress("${share}/man/man1/limber.1")
file(RENAME "${documents}/CHANGELOG.md" "${documents}/changelog")
compress("${documents}/changelog")
file(MAKE_DIRECTORY "${share}/zsh/vendor-completions")
file(RENAME "${share}/zsh/site-functions/_limber" "${share}/zsh/vendor-completions/_limber")
file(REMOVE_RECURSE "${share}/zsh/site-functions")

# The text of the licence is in every Debian system.
file(REMOVE "${documents}/LICENSE")
set(copyright "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: limber

Files: *
Copyright: The authors of Limber
License: Apache-2.0
 Licensed under the Apache License, Version 2.0. On Debian systems its text
 is in /usr/share/common-licenses/Apache-2.0.
")
file(WRITE "${documents}/copyright" "${copyright}")
file(WRITE "${staging}/dev/usr/share/doc/limber-dev/copyright" "${copyright}")
file(CREATE_LINK ../limber/changelog.gz "${staging}/dev/usr/share/doc/limber-dev/changelog.gz" SYMBOLIC)
