// The blocks of the pages that users read: README.md, schema/*.md and engine/*.md. Tests run or register each block. A
// comment in the line before a block gives the reason when they do not: <!-- not run: REASON --> or <!-- not
// registered: REASON -->.
import { spawnSync } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, root } from './world.mjs'

export const pages = [
  'README.md',
  ...['schema', 'engine'].flatMap((folder) =>
    readdirSync(join(root, folder))
      .filter((name) => name.endsWith('.md'))
      .map((name) => `${folder}/${name}`)
  )
]

export const pageText = (page) => readFileSync(join(root, page), 'utf8')

// Returns each block as {kind, text, line, excuse}: the word behind the fence, the content of the block, and its place
// in the page.
export function blocksOf(page) {
  const blocks = []
  let block,
    before = ''
  for (const [i, line] of pageText(page).split('\n').entries()) {
    const fence = /^```(\w*)$/.exec(line)
    if (!block && fence) {
      block = {
        kind: fence[1],
        text: '',
        line: i + 2,
        excuse: /^<!-- not (?:run|registered): (\S.*) -->$/.exec(before)?.[1]
      }
    } else if (block && fence) {
      blocks.push(block)
      block = undefined
    } else if (block) {
      block.text += `${line}\n`
    }
    before = line
  }
  expect(!block, `${page} closes its blocks`)
  return blocks
}

// Returns the commands of a block: one on each line, or on more lines when the shell needs them.
export function commandsOf(text) {
  const commands = []
  let command = ''
  for (const line of text.split('\n')) {
    if (command === '' && /^\s*(#.*)?$/.test(line)) continue
    command += `${line}\n`
    if (line.endsWith('\\') || spawnSync('bash', ['-n'], { input: command }).status !== 0) continue
    commands.push(command.trimEnd())
    command = ''
  }
  expect(command === '', 'the last command ends', command)
  return commands
}

export const wantedExit = (command) => Number(/exit code (\d+)/.exec(command)?.[1] ?? 0)

// Returns the anchors of a page, as the sites that show it make them.
export const anchorsOf = (page) =>
  new Set(
    pageText(page)
      .split('\n')
      .filter((line) => /^#+ /.test(line))
      .map((line) =>
        line
          .replace(/^#+ /, '')
          .toLowerCase()
          .replace(/[^\p{L}\p{N} _-]/gu, '')
          .replaceAll(' ', '-')
      )
  )
