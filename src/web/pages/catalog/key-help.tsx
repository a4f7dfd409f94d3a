/** @jsxImportSource preact */
// What the keys do, in a dialog; the browser gives the focus back when it closes.

import { boardKeys, keyHelpId } from './board-keys.ts'

export function KeyHelp() {
  return (
    <dialog id={keyHelpId} class="help" aria-labelledby="key-help-title">
      <form method="dialog">
        <h2 id="key-help-title">Keys</h2>
        <dl>
          {boardKeys.map(([key, meaning]) => (
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
