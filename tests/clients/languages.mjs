// The examples of tools/clients/README.md, which do the same in each language: run as they are printed.
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, expectEqual, promise, root } from '../lib/world.mjs'

const page = readFileSync(join(root, 'tools', 'clients', 'README.md'), 'utf8')

// By the word behind the fence: the file, the programs that run it, and what they print.
const said = ['completed', '{"room":12}']
const languages = {
  sh: { file: 'stay.sh', needs: ['curl', 'jq'], command: ['sh'], prints: said },
  ts: { file: 'stay.mjs', needs: [], command: [process.execPath], prints: said },
  py: { file: 'stay.py', needs: [], command: ['python3'], prints: ['completed', '{"room": 12}'] },
  java: {
    file: 'Stay.java',
    needs: ['java'],
    command: ['java'],
    prints: ['"status":"completed"', '"result":{"room":12}']
  }
}

const isInstalled = (name) => spawnSync('sh', ['-c', `command -v ${name}`], { stdio: 'ignore' }).status === 0

export const exampleIn = (language) => page.match(new RegExp(`\`\`\`${language}\\n([^]*?)\`\`\``))[1]

// Runs the example of a language in a folder, twice where `times` says so. `command` is what runs it, if not the
// program that is named above.
export async function runExample(world, folder, language, { command, times = 1 } = {}) {
  const { file, needs, prints, ...more } = languages[language]
  const missing = needs.filter((name) => !isInstalled(name))
  if (missing.length > 0) {
    console.log(`# ${missing} is not installed: the example in ${language} is not run`)
    return
  }
  await world.applyFirst()
  await promise(`the example in ${language} runs as it is printed`, () => {
    // The compiler has looked at the TypeScript; without types it is JavaScript.
    const text = language === 'ts' ? exampleIn('ts').replace('SAGAD_URL!', 'SAGAD_URL') : exampleIn(language)
    writeFileSync(join(folder, file), text)
    const env = { ...process.env, SAGAD_URL: `http://127.0.0.1:${world.port}`, SAGAD_TOKEN: 'good' }
    const [program, ...args] = command ?? more.command
    for (let time = 0; time < times; time++) {
      const { status, stdout, stderr } = spawnSync(program, [...args, file], { cwd: folder, env, encoding: 'utf8' })
      expectEqual(status, 0, `it ends well (${stdout}${stderr})`)
      const lines = stdout.trimEnd().split('\n')
      expectEqual(lines.length, prints.length, `lines of ${stdout}`)
      for (const [n, part] of prints.entries()) expect(lines[n].includes(part), `line ${n + 1} has ${part}`, stdout)
    }
  })
}
