// Preloaded into servers that would listen on every interface: they listen on this machine only.
const { Server } = require('node:net')
const listen = Server.prototype.listen

Server.prototype.listen = function (port, ...rest) {
  return listen.call(this, Number(port), '127.0.0.1', ...rest.filter((item) => typeof item === 'function'))
}
