// An issuer of OpenID Connect for tests: a real HTTP server with discovery and keys, which signs whatever it is asked
// to. It can take keys away, add some, and be away itself.
import { constants, generateKeyPairSync, sign } from 'node:crypto'
import { createServer } from 'node:http'

const part = (value) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
const curves = { ES256: 'P-256', ES384: 'P-384', ES512: 'P-521' }

// A pair of keys for the algorithm; `jwk` is what an issuer publishes of it.
export function makeKey(kid, alg) {
  const pair = curves[alg]
    ? generateKeyPairSync('ec', { namedCurve: curves[alg] })
    : generateKeyPairSync('rsa', { modulusLength: 2048 })
  return { kid, alg, ...pair, jwk: { ...pair.publicKey.export({ format: 'jwk' }), kid, alg, use: 'sig' } }
}

// header and claims as they are, signed by the key.
export function jwt(key, claims, header = {}) {
  const text = `${part({ alg: key.alg, kid: key.kid, typ: 'JWT', ...header })}.${part(claims)}`
  const bits = key.alg.slice(2)
  const how = {
    RS: {},
    PS: { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: bits / 8 },
    ES: { dsaEncoding: 'ieee-p1363' }
  }[key.alg.slice(0, 2)]
  return `${text}.${sign(`sha${bits}`, Buffer.from(text), { key: key.privateKey, ...how }).toString('base64url')}`
}

export class Issuer {
  keys = []
  reads = 0 // of the keys
  asked = [] // every path
  audience = 'sagad'
  hangs = false // takes requests and answers none
  isAway = false // takes no requests; its port stays its own

  async open() {
    this.server = createServer((request, response) => {
      if (this.isAway) return request.socket.destroy()
      this.asked.push(request.url)
      if (this.hangs) return
      const document = {
        '/tenant/.well-known/openid-configuration': () => ({ issuer: this.url, jwks_uri: `${this.url}/keys` }),
        '/tenant/keys': () => (this.reads++, { keys: this.keys.map((key) => key.jwk) })
      }[request.url]
      response.writeHead(document ? 200 : 404, { 'content-type': 'application/json' })
      response.end(JSON.stringify(document ? document() : {}))
    })
    await new Promise((resolve) => this.server.listen(0, '127.0.0.1', resolve))
    this.url = `http://127.0.0.1:${this.server.address().port}/tenant`
  }

  async close() {
    this.server.closeAllConnections()
    await new Promise((resolve) => this.server.close(resolve))
  }

  claims(more = {}) {
    const now = Math.floor(Date.now() / 1000)
    return { iss: this.url, aud: this.audience, sub: 'ada', iat: now, exp: now + 600, ...more }
  }

  sign(more = {}, { key = this.keys[0], header } = {}) {
    return jwt(key, this.claims(more), header)
  }
}
