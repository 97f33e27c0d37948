#!/usr/bin/env bash
# Gives ten tiny tasks to a small model, once with each row of `settings`, and prints which of them were solved.
#
#   benches/tiny/run.sh ROBOT_TO BASE_URL MODEL [SETTING…]
#
# A task is a directory with an objective, files, and the check that grades it. Each is a repository of its own, with
# one iteration. Nothing of it is a test: models and machines differ. docs/models.md has the figures.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
robot_to=$(realpath "$1") url=$2 model=$3
shift 3
# What the server is asked for is free, and it wants no key.
export OPENAI_API_KEY=${OPENAI_API_KEY:-none}
declare -A settings=(
    [all]="--local-guards --small-steps"
    [no-small-steps]="--local-guards"
    [none]=""
)
if [ $# = 0 ]; then set -- "${!settings[@]}"; fi
out=${OUT:-$(mktemp -d)}
only=${ONLY:-}
mkdir -p "$out"
echo "results: $out/results.tsv"
for setting in "$@"; do
    read -ra flags <<<"${settings[$setting]}"
    for task in "$here"/tasks/*${only}*/; do
        name=$(basename "$task")
        dir=$out/$setting/$name
        rm -rf "$dir" && mkdir -p "$dir"
        cp -r "$task." "$dir/repo"
        rm "$dir/repo/objective"
        git -C "$dir/repo" init -q
        git -C "$dir/repo" add -A
        git -C "$dir/repo" -c user.name=tiny -c user.email=tiny@example.org commit -qm 'the task'
        began=$(date +%s)
        status=0
        (cd "$dir/repo" && GIT_AUTHOR_NAME=tiny GIT_COMMITTER_NAME=tiny EMAIL=tiny@example.org \
            timeout "${LIMIT:-600}" "$robot_to" "$(cat "$task/objective")" --verify 'sh check.sh' \
            --protect-path check.sh --provider openai --base-url "$url" --model "$model" --max-iterations 1 \
            --work-dir "$dir/work" --record "$dir/exchanges.jsonl" --temperature 0 "${flags[@]}" \
            >"$dir/out" 2>"$dir/err") || status=$?
        solved=no
        [ "$(git -C "$dir/repo" rev-list --count --all)" -gt 1 ] && solved=yes
        printf '%s\t%s\t%s\t%s\t%s\n' "$setting" "$name" "$solved" "$(($(date +%s) - began))" "$status" |
            tee -a "$out/results.tsv"
    done
done
