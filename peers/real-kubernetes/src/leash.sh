# Reads which processes have begun and ended. When whoever writes that is gone, in whatever way, so is all
# that it had: the processes, and the directory.
trap '' INT TERM HUP
left=
while read -r what pid; do
    case $what in
    begun) left="$left $pid" ;;
    ended)
        others=
        for one in $left; do
            [ "$one" = "$pid" ] || others="$others $one"
        done
        left=$others
        ;;
    esac
done
for one in $left; do
    kill -9 "$one"
done
rm -rf "$1"
