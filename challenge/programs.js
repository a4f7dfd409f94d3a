// Starting and ending programs: gateways, and the databases and caches that they need. Whatever was started is ended with
// this process.

import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdirSync, openSync, readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** @typedef {import('node:child_process').ChildProcess} ChildProcess */

/** @type {Set<ChildProcess>} */
const running = new Set()

process.on('exit', () => {
  for (const child of running) signal(child, 'SIGKILL')
})
for (const name of /** @type {const} */ (['SIGINT', 'SIGTERM'])) process.on(name, () => process.exit(1))

/**
 * With a process group of its own, because some gateways are several processes.
 *
 * @param {string[]} command
 * @param {{ folder: string, log: string, env?: Record<string, string>, uid?: number | undefined }} options
 */
export function launch([program = '', ...args], { folder, log, env = {}, uid }) {
  const output = openSync(join(folder, `${log}.log`), 'a')
  const child = spawn(program, args, {
    cwd: folder,
    detached: true,
    stdio: ['ignore', output, output],
    env: { ...process.env, ...env },
    ...(uid === undefined ? {} : { uid, gid: uid }),
  })
  running.add(child)
  child.on('error', (error) => console.error(`${program}: ${error.message}`))
  child.on('exit', () => running.delete(child))
  return child
}

/** @param {ChildProcess} child @param {NodeJS.Signals} name */
export function signal(child, name) {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  try {
    process.kill(-child.pid, name)
  } catch {
    // It has ended meanwhile.
  }
}

/** Ends it by this signal, and by force if that does not help. @param {ChildProcess} child @param {NodeJS.Signals} name */
export async function end(child, name, patienceMs = 20_000) {
  signal(child, name)
  const force = setTimeout(() => signal(child, 'SIGKILL'), patienceMs)
  while (child.exitCode === null && child.signalCode === null) await sleep(20)
  clearTimeout(force)
}

/**
 * Below the ports that systems give to outgoing connections: one of those could be taken while its server is down.
 *
 * @returns {Promise<number>}
 */
export async function freePort() {
  for (;;) {
    const port = 10_000 + Math.floor(Math.random() * 20_000)
    if (await isFree(port)) return port
  }
}

/** @param {number} port @returns {Promise<boolean>} */
function isFree(port) {
  return new Promise((resolve) => {
    const server = createServer()
    server.on('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}

/**
 * @template Value
 * @param {string} what
 * @param {() => Promise<Value | undefined | false>} check
 * @returns {Promise<Value>}
 */
export async function waitFor(what, check, patienceMs = 180_000) {
  const deadline = Date.now() + patienceMs
  /** @type {unknown} */
  let problem
  while (Date.now() < deadline) {
    try {
      const value = await check()
      if (value) return value
    } catch (thrown) {
      problem = thrown
    }
    await sleep(100)
  }
  throw new Error(`waited in vain for ${what}`, { cause: problem })
}

/** Whether an address answers with success. @param {string} url */
export async function answers(url) {
  return (await fetch(url)).ok
}

/** @param {string} name */
export function hasProgram(name) {
  return spawnSync('sh', ['-c', `command -v "${name}"`]).status === 0
}

/** What a program says of itself; '' = it says nothing. @param {string} program @param {string[]} args @param {RegExp} pattern */
export function versionOf(program, args, pattern) {
  const { stdout, stderr } = spawnSync(program, args, { timeout: 60_000 })
  return pattern.exec(`${stdout}\n${stderr}`)?.[1] ?? ''
}

/**
 * @typedef {object} ProgramOptions
 * @property {string[]} command
 * @property {string} folder
 * @property {string} log
 * @property {Record<string, string>} [env]
 * @property {number | undefined} [uid]
 * @property {() => Promise<boolean>} ready
 */

/** A gateway, a database or a cache: it can be ended and started again, and made to stand still. */
export class Program {
  /** @type {ChildProcess | undefined} */
  #child

  /** @param {ProgramOptions} options */
  constructor(options) {
    this.options = options
  }

  async start() {
    const { command, ready, ...rest } = this.options
    const [name = ''] = command
    if (!hasProgram(name)) throw new Error(`${name} is not installed; --program says where it is`)
    const child = launch(command, rest)
    this.#child = child
    await waitFor(name, async () => {
      if (child.exitCode !== null) throw new Error(`${name} ended with code ${child.exitCode}: ${lastWords(rest)}`)
      return await ready()
    })
  }

  /** @param {NodeJS.Signals} name */
  async end(name) {
    if (this.#child) await end(this.#child, name)
  }

  /** As on a machine that is short of everything. */
  pause() {
    if (this.#child) signal(this.#child, 'SIGSTOP')
  }

  resume() {
    if (this.#child) signal(this.#child, 'SIGCONT')
  }
}

/** @param {{ folder: string, log: string }} options */
function lastWords({ folder, log }) {
  return readFileSync(join(folder, `${log}.log`), 'utf8').slice(-1_000)
}

/** A database or a cache. */
class Server extends Program {
  /** @param {string} url @param {ProgramOptions} options */
  constructor(url, options) {
    super(options)
    this.url = url
  }

  async stop() {
    this.resume()
    await this.end('SIGINT')
  }
}

const debianPostgres = '/usr/lib/postgresql'

/** The folder of PostgreSQL's programs; undefined = it is not installed. */
export function findPostgres() {
  if (hasProgram('initdb') && hasProgram('postgres')) return ''
  if (!existsSync(debianPostgres)) return undefined
  const versions = readdirSync(debianPostgres).sort((a, b) => Number(b) - Number(a))
  const newest = versions.find((version) => existsSync(join(debianPostgres, version, 'bin/initdb')))
  return newest && `${join(debianPostgres, newest, 'bin')}/`
}

/** PostgreSQL with its defaults: every commit is synced. It refuses to run as root. @param {string} folder */
export async function startPostgres(folder) {
  const programs = findPostgres()
  if (programs === undefined) throw new Error('PostgreSQL is not installed')
  const home = join(folder, 'postgres')
  mkdirSync(home, { recursive: true })
  // Its own user has to reach its folder.
  chmodSync(folder, 0o755)
  const isRoot = process.getuid?.() === 0
  const uid = isRoot ? Number(spawnSync('id', ['-u', 'postgres']).stdout.toString()) : undefined
  if (uid !== undefined) chownSync(home, uid, uid)
  const port = await freePort()
  const options = { cwd: home, ...(uid === undefined ? {} : { uid, gid: uid }) }
  const made = spawnSync(`${programs}initdb`, ['-D', join(home, 'data'), '-U', 'challenge', '--auth=trust'], options)
  if (made.status !== 0) throw new Error(`initdb: ${made.stderr}`)
  const command = [
    `${programs}postgres`,
    '-D',
    join(home, 'data'),
    '-p',
    `${port}`,
    '-k',
    home,
    '-c',
    'max_connections=300',
  ]
  const server = new Server(`postgres://challenge@127.0.0.1:${port}/postgres`, {
    command,
    folder: home,
    log: 'postgres',
    uid,
    ready: async () =>
      spawnSync(`${programs}pg_isready`, ['-h', '127.0.0.1', '-p', `${port}`, '-U', 'challenge']).status === 0,
  })
  await server.start()
  return server
}

/** @param {string} folder */
export async function startRedis(folder) {
  const port = await freePort()
  const command = ['redis-server', '--port', `${port}`, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']
  const ping = () =>
    spawnSync('redis-cli', ['-p', `${port}`, 'ping'])
      .stdout?.toString()
      .trim() === 'PONG'
  const server = new Server(`redis://127.0.0.1:${port}`, { command, folder, log: 'redis', ready: async () => ping() })
  await server.start()
  return server
}
