// What a start of the gateway takes on the command line: settings for this one start, each above its variable.

import type { CommandShape } from './command.ts'
import { readInput } from './read-input.ts'
import { Refusal, usageRefusal } from './refusal.ts'

export interface ServeOptions {
  /** How many processes; undefined = this one. */
  readonly workers?: number
  /** By variable. */
  readonly settings: Readonly<Record<string, string>>
}

/** The options that stand for variables. */
const variables = { host: 'TOLLGATE_HOST', port: 'TOLLGATE_PORT', data: 'TOLLGATE_DATA', config: 'TOLLGATE_CONFIG' }

export const serveCommand: CommandShape = {
  words: ['serve'],
  summary: 'starts the gateway',
  details:
    'Also without the word: tollgate --port 8081, npm start -- --port 8081. An option stands above its variable, which stands above tollgate.yaml.',
  options: {
    host: { value: 'ADDRESS', help: 'where to listen (127.0.0.1); TOLLGATE_HOST' },
    port: { value: 'N', help: 'the port, 0 for any free one (8080); TOLLGATE_PORT' },
    data: { value: 'FOLDER', help: 'of the database and generated secrets (./data); TOLLGATE_DATA' },
    config: { value: 'FILE', help: 'the configuration (./tollgate.yaml if it is there); TOLLGATE_CONFIG' },
    workers: { value: 'N', help: 'so many processes on one port, with PostgreSQL' },
  },
  examples: ['tollgate serve --port 8081 --data ./data-2', 'DATABASE_URL=postgres://… tollgate serve --workers 2'],
}

export function readServeOptions(args: readonly string[]): ServeOptions | Refusal {
  const read = readInput(serveCommand, args)
  if (read instanceof Refusal) return read
  const { input, json } = read
  const port = input.text('port')
  if (port !== undefined && !(/^[0-9]{1,5}$/.test(port) && Number(port) <= 65_535)) {
    return usageRefusal(`--port must be a number from 0 to 65535, not "${port}".`, 'tollgate serve --port 8081')
  }
  const workers = input.text('workers')
  if (workers !== undefined && !/^[1-9][0-9]?$/.test(workers)) {
    return usageRefusal(`--workers must be a number from 1 to 99, not "${workers}".`, 'tollgate serve --workers 2')
  }
  const given = Object.entries(variables).map(([option, variable]) => [variable, input.text(option)] as const)
  const settings = [...given, ['TOLLGATE_LOG', json ? 'json' : undefined] as const]
  return {
    settings: Object.fromEntries(settings.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))),
    ...(workers !== undefined && { workers: Number(workers) }),
  }
}
