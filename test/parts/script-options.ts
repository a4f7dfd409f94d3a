// The command line of a script that people run by hand: `--help` shows how, and unknown options are reported with the
// usage instead of a trace of the parser.

import { type ParseArgsConfig, parseArgs } from 'node:util'

type Declared = NonNullable<ParseArgsConfig['options']>
type Values<Options extends Declared> = ReturnType<typeof parseArgs<{ options: Options }>>['values']

export function scriptOptions<const Options extends Declared>(usage: string, options: Options): Values<Options> {
  const args = Bun.argv.slice(2)
  if (args.includes('--help') || args.includes('-h')) {
    console.log(usage)
    process.exit(0)
  }
  try {
    return parseArgs({ args, options }).values
  } catch (error) {
    return refuseOptions(error instanceof Error ? error.message : String(error), usage)
  }
}

export function refuseOptions(why: string, usage: string): never {
  console.error(`${why}\n\n${usage}`)
  process.exit(2)
}
