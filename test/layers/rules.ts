// The layer rules: each reads sources and returns findings, one line each, that say where, what, and what
// to write instead. Tests beside the code are not read: they may use any part, and nothing ships from them.

import { posix } from 'node:path'
import { bans, dialectCommons, exceptions, layers, narrowed, providerNamesAllowed, topFiles } from './house.ts'
import { readSource, type SourceText } from './source-text.ts'

/** Path from the root of the repository (`src/kernel/clock.ts`) to text. */
export type Sources = ReadonlyMap<string, string>

interface File extends SourceText {
  readonly path: string
  /** Its imports inside the repository; packages are left out. */
  readonly targets: readonly { readonly path: string; readonly line: number }[]
}

const isTest = (path: string) => /\.test\.tsx?$/.test(path)

export function checkHouse(sources: Sources): string[] {
  const files: File[] = []
  for (const [path, text] of [...sources].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (isTest(path)) continue
    const source = readSource(text)
    const targets = source.imports
      .filter(({ specifier }) => specifier.startsWith('.'))
      .map(({ specifier, line }) => ({ path: posix.join(posix.dirname(path), specifier), line }))
    files.push({ ...source, path, targets })
  }
  return [
    ...files.flatMap(checkPlace),
    ...files.flatMap(checkDirection),
    ...files.flatMap(checkDialects),
    ...checkCycles(files),
    ...checkProviderNames(files),
    ...files.flatMap(checkBans),
    ...files.flatMap(checkDirectStreams),
  ]
}

/** The folder under src/, or the name topFiles gives a file directly in it; undefined = not planned. */
function partOf(path: string): string | undefined {
  const [, first = '', ...rest] = path.split('/')
  const part = rest.length > 0 ? first : topFiles.find(({ pattern }) => pattern.test(first))?.part
  return layers.some((group) => part !== undefined && group.includes(part)) ? part : undefined
}

const levelOf = (part: string) => layers.findIndex((group) => group.includes(part))

function checkPlace({ path }: File): string[] {
  if (partOf(path)) return []
  return [`${path}:1: stands in no layer. Put it into one of the folders ${layers.flat().join(', ')}`]
}

function checkDirection(file: File): string[] {
  const from = partOf(file.path)
  if (!from) return []
  return file.targets.flatMap(({ path, line }) => {
    const at = `${file.path}:${line}: imports ${path}`
    if (/^(test|bench)\//.test(path) || isTest(path))
      return `${at}. Move what the product needs into src, outside tests`
    const to = path.startsWith('src/') ? partOf(path) : undefined
    if (!to || to === from) return []
    const narrow = narrowed.find((row) => row.from === from && !row.only.test(path))
    if (narrow) return `${at}. ${narrow.replacement}`
    if (levelOf(to) > levelOf(from)) return []
    if (exceptions.some((row) => row.from === from && row.to === to)) return []
    if (levelOf(to) === levelOf(from)) {
      return `${at}, a sibling. Move what ${from} and ${to} share below both, or join them in a layer above`
    }
    return `${at}, a layer above. Take it as an argument of an interface that ${from} owns, passed in from app.ts`
  })
}

function checkDialects(file: File): string[] {
  const dialectOf = (path: string) => {
    const folder = /^src\/dialects\/([^/]+)\//.exec(path)?.[1]
    return folder !== undefined && dialectCommons.includes(folder) ? undefined : folder
  }
  const own = dialectOf(file.path)
  return file.targets.flatMap(({ path, line }) => {
    const other = dialectOf(path)
    if (!own || !other || own === other) return []
    return `${file.path}:${line}: dialect ${own} imports dialect ${other}. Meet in the canonical form, in a file of src/dialects/`
  })
}

/** A file in a cycle is reported with its shortest way round; the files on that way are not reported again. */
function checkCycles(files: readonly File[]): string[] {
  const byPath = new Map(files.map((file) => [file.path, file]))
  const reported = new Set<string>()
  return files.flatMap((start) => {
    const way = reported.has(start.path) ? undefined : wayBack(start, byPath)
    if (!way) return []
    for (const path of way) reported.add(path)
    const line = start.targets.find(({ path }) => path === way[1])?.line ?? 1
    return `${start.path}:${line}: import cycle ${way.join(' → ')}. Move what they share into a file below them`
  })
}

/** Breadth first from a file to itself; undefined if no way leads back. */
function wayBack(start: File, byPath: ReadonlyMap<string, File>): string[] | undefined {
  const ways: string[][] = [[start.path]]
  const seen = new Set<string>()
  for (const way of ways) {
    for (const { path } of byPath.get(way.at(-1) ?? '')?.targets ?? []) {
      if (path === start.path) return [...way, path]
      if (seen.has(path)) continue
      seen.add(path)
      ways.push([...way, path])
    }
  }
  return undefined
}

/** A provider is a folder of code in src/providers/, or an `id: '…'` in a file of src/providers/data/; that is its home. */
function providerHomes(files: readonly File[]): Map<string, string> {
  const homes = new Map<string, string>()
  for (const { path, code, literals } of files) {
    const folder = /^(src\/providers\/(?!data\/|rules\/)([^/]+)\/)/.exec(path)
    if (folder?.[1] && folder[2]) homes.set(folder[2], folder[1])
    if (!path.startsWith('src/providers/data/')) continue
    for (const { text, at } of literals) {
      if (/\bid\s*:\s*$/.test(code.slice(Math.max(0, at - 20), at))) homes.set(text, path)
    }
  }
  return homes
}

function checkProviderNames(files: readonly File[]): string[] {
  const homes = providerHomes(files)
  return files.flatMap((file) => {
    if (file.path.startsWith('src/catalog/data/') || providerNamesAllowed.has(file.path)) return []
    return file.literals.flatMap(({ text, whole, at }) => {
      const id = text.includes('/') ? text.slice(0, text.indexOf('/')) : whole ? text : ''
      const home = homes.get(id)
      if (!home || file.path.startsWith(home)) return []
      return `${file.path}:${file.lineAt(at)}: names the provider ${id}. Ask for a capability, or take the id from ${home}`
    })
  })
}

function checkBans(file: File): string[] {
  return bans.flatMap((ban) => {
    if (ban.allowed?.test(file.path)) return []
    const say = (line: number, found: string) => `${file.path}:${line}: ${ban.what}. ${ban.replacement}, not ${found}`
    const written = [...file.code.matchAll(ban.code)].map((match) =>
      say(file.lineAt(match.index), match[0].replace(/\s+/g, ' ')),
    )
    const imported = file.imports.flatMap(({ specifier, names, line }) => {
      const found = [specifier, ...names.map((name) => `${specifier}#${name}`)].find((name) => ban.imports?.test(name))
      return found ? say(line, found.replace('#', ' ')) : []
    })
    return [...written, ...imported]
  })
}

/** `type: 'direct'` means something else in a provider's JSON, so only files that make streams are meant. */
function checkDirectStreams(file: File): string[] {
  if (!/\bReadableStream\b/.test(file.code)) return []
  return file.literals.flatMap(({ text, at }) => {
    if (text !== 'direct' || !/\btype\s*:\s*$/.test(file.code.slice(Math.max(0, at - 20), at))) return []
    return `${file.path}:${file.lineAt(at)}: a direct stream, which does not wait for slow readers by itself. Use a pull-based ReadableStream, not type: 'direct'`
  })
}
