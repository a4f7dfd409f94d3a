/** @jsxImportSource preact */
// What the keys of a page do, in a dialog that the browser closes with Esc and then gives the focus back; and what
// handlers of keys have in common: who is typing, and where the focus goes.

const helpId = 'key-help'

export interface KeyHelpProps {
  /** Key and meaning. */
  readonly keys: readonly (readonly [string, string])[]
}

export function KeyHelp({ keys }: KeyHelpProps) {
  return (
    <dialog id={helpId} class="help" aria-labelledby="key-help-title">
      <form method="dialog">
        <h2 id="key-help-title">Keys</h2>
        <dl>
          {keys.map(([key, meaning]) => (
            <div key={key}>
              <dt>
                <kbd>{key}</kbd>
              </dt>
              <dd>{meaning}</dd>
            </div>
          ))}
        </dl>
        <button type="submit" class="button quiet">
          Close
        </button>
      </form>
    </dialog>
  )
}

/** True, as handlers of keys say that a key meant something. */
export function openKeyHelp(): true {
  const dialog = document.getElementById(helpId)
  if (dialog instanceof HTMLDialogElement && !dialog.open) dialog.showModal()
  return true
}

/** Keys that are typed into a field stay there. */
export function isTyping({ target }: Event): boolean {
  return target instanceof HTMLElement && target.matches('input:not([type=checkbox]), select, textarea')
}

/** Whether there was something to focus. */
export function focusOn(element: HTMLElement | null | undefined): boolean {
  element?.focus()
  return element !== null && element !== undefined
}
