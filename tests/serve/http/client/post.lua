-- For wrk: posts the file that is named behind `--`, with a bearer token where one is.
function init(arguments)
  local file = assert(io.open(arguments[1], "rb"))
  wrk.method = "POST"
  wrk.body = file:read("*a")
  wrk.headers["Content-Type"] = "application/json"
  if arguments[2] then wrk.headers["Authorization"] = "Bearer " .. arguments[2] end
  file:close()
end
