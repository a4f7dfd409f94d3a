// Shell completion scripts, generated from the command definitions. They call nothing, so completion works without a
// gateway.

import { type CommandShape, optionsOf } from './command.ts'

export const shells = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof shells)[number]

/** The words that may follow `tollgate`, `tollgate NOUN` and `tollgate NOUN VERB`, and the options with their help. */
interface Level {
  /** The words typed so far: ``, `keys`, `keys create`. */
  readonly after: string
  readonly choices: readonly (readonly [word: string, help: string])[]
}

export function completionScript(shell: Shell, definitions: readonly CommandShape[]): string {
  const levels = levelsOf(definitions)
  return shell === 'fish' ? fishScript(levels) : shell === 'zsh' ? zshScript(levels) : bashScript(levels)
}

function levelsOf(definitions: readonly CommandShape[]): readonly Level[] {
  const byNoun = Map.groupBy(definitions, ({ words }) => words[0])
  const nouns = [...byNoun].map(([noun, own]) => {
    const verbs = own.flatMap(({ words }) => words[1] ?? [])
    return [noun, own.length === 1 ? (own[0]?.summary ?? '') : verbs.join(', ')] as const
  })
  const inner = [...byNoun].flatMap(([noun, own]): Level[] => {
    const usual = own.find(({ words, isDefault }) => isDefault || words[1] === undefined)
    const verbs = own.flatMap(({ words, summary }) => (words[1] === undefined ? [] : [[words[1], summary] as const]))
    return [
      { after: noun, choices: [...verbs, ...(usual ? optionChoices(usual) : [])] },
      ...own.flatMap((each) =>
        each.words[1] === undefined ? [] : [{ after: each.words.join(' '), choices: optionChoices(each) }],
      ),
    ]
  })
  return [{ after: '', choices: nouns }, ...inner]
}

function optionChoices(definition: CommandShape): Level['choices'] {
  const options = Object.entries(optionsOf(definition)).map(([name, { help }]) => [`--${name}`, help] as const)
  return [...options, ['--help', 'shows help'] as const]
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

/** Looks up the longest known prefix: `keys create x --` is completed as `keys create`. */
function bashScript(levels: readonly Level[]): string {
  const cases = levels.map(({ after, choices }) => {
    return `    ${quoted(after)}) echo ${quoted(choices.map(([word]) => word).join(' '))} ;;`
  })
  return `# tollgate completion for bash. Try: source <(tollgate completion bash)
_tollgate_words() {
  case "$1" in
${cases.join('\n')}
    *) return 1 ;;
  esac
}
_tollgate() {
  local current="\${COMP_WORDS[COMP_CWORD]}" words
  words=$( { (( COMP_CWORD > 2 )) && _tollgate_words "\${COMP_WORDS[1]} \${COMP_WORDS[2]}"; } ||
    { (( COMP_CWORD > 1 )) && _tollgate_words "\${COMP_WORDS[1]}"; } ||
    { (( COMP_CWORD == 1 )) && _tollgate_words ''; } )
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _tollgate tollgate
`
}

function zshScript(levels: readonly Level[]): string {
  const described = ([word, help]: readonly [string, string]) => quoted(`${word.replaceAll(':', '\\:')}:${help}`)
  const cases = levels.map(({ after, choices }) => {
    return `    ${quoted(after)}) choices=(${choices.map(described).join(' ')}) ;;`
  })
  return `#compdef tollgate
# tollgate completion for zsh. Try: source <(tollgate completion zsh)
_tollgate_choices() {
  case "$1" in
${cases.join('\n')}
    *) return 1 ;;
  esac
}
_tollgate() {
  local -a choices
  { (( CURRENT > 3 )) && _tollgate_choices "\${words[2]} \${words[3]}" } ||
    { (( CURRENT > 2 )) && _tollgate_choices "\${words[2]}" } ||
    { (( CURRENT == 2 )) && _tollgate_choices '' }
  _describe 'tollgate' choices || _files
}
(( \${+functions[compdef]} )) || { autoload -Uz compinit && compinit }
compdef _tollgate tollgate
`
}

function fishScript(levels: readonly Level[]): string {
  const lines = levels.flatMap(({ after, choices }) => {
    const [noun, verb] = after.split(' ')
    const seen = (word: string | undefined) => `__fish_seen_subcommand_from ${word}`
    const condition = verb ? `${seen(noun)}; and ${seen(verb)}` : noun ? seen(noun) : '__fish_use_subcommand'
    return choices.map(([word, help]) => {
      const what = word.startsWith('--') ? `-l ${word.slice(2)}` : `-f -a ${word}`
      return `complete -c tollgate -n ${quoted(condition)} ${what} -d ${quoted(help)}`
    })
  })
  return `# tollgate completion for fish. Try: tollgate completion fish | source\n${[...new Set(lines)].join('\n')}\n`
}
