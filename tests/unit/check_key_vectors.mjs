// Computes the published key vectors once more from the words of the contract, in another language than the engine's.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const { vectors } = JSON.parse(readFileSync(join(process.env.SCHEMA_DIR ?? 'schema', 'key-vectors.json'), 'utf8'))
const members = ['namespace', 'run', 'step', 'tool', 'direction', 'scope', 'generation']
let wrong = 0

for (const vector of vectors) {
  const hash = createHash('sha256').update('sk1', 'ascii')

  for (const member of members) {
    const bytes = Buffer.from(String(vector[member]), 'utf8')
    const length = new DataView(new ArrayBuffer(4))

    length.setUint32(0, bytes.length, false)
    hash.update(Buffer.from(length.buffer)).update(bytes)
  }
  const hex = hash.digest('hex')
  const variant = '89ab'[parseInt(hex[16], 16) & 3]
  const parts = [hex.slice(0, 8), hex.slice(8, 12), '8' + hex.slice(13, 16), variant + hex.slice(17, 20)]
  const key = [...parts, hex.slice(20, 32)].join('-')

  if (key !== vector.key || hex !== vector.sha256) {
    wrong++
    console.error(`${vector.says}: published ${vector.key}, computed ${key}`)
  }
}
if (vectors.length < 12 || new Set(vectors.map((vector) => vector.key)).size !== vectors.length) {
  wrong++
  console.error('there must be at least 12 vectors, and no two may share a key')
}
console.log(`${vectors.length} key vectors, ${wrong} wrong`)
process.exit(wrong ? 1 : 0)
