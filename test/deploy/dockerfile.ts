// Reads a Dockerfile as far as its tests need it: instructions with their arguments, continued lines joined.

export interface Instruction {
  readonly name: string
  readonly rest: string
}

export function readDockerfile(text: string): readonly Instruction[] {
  const joined = text
    .split('\n')
    .filter((line) => !/^\s*#/.test(line))
    .join('\n')
    .replace(/\\\n\s*/g, ' ')
  return joined
    .split('\n')
    .map((line) => /^([A-Z]+)\s+(.*)$/.exec(line.trim()))
    .flatMap((match) => (match?.[1] && match[2] ? [{ name: match[1], rest: match[2].trim() }] : []))
}

/** The copies of the last stage from the build context: `[from, to]`. */
export function copiesOfLastStage(instructions: readonly Instruction[]): readonly (readonly [string, string])[] {
  const last = instructions.findLastIndex(({ name }) => name === 'FROM')
  return instructions
    .slice(last)
    .filter(({ name, rest }) => name === 'COPY' && !rest.startsWith('--from'))
    .flatMap(({ rest }) => {
      const words = rest.split(/\s+/)
      const to = words.at(-1) ?? ''
      return words.slice(0, -1).map((from) => [from, to] as const)
    })
}

/** The words of `CMD ["a", "b"]` at the end of an instruction. */
export function commandOf({ rest }: Instruction): readonly string[] {
  return JSON.parse(rest.slice(rest.indexOf('['))) as string[]
}
